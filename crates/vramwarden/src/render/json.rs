//! `vramwarden.doctor/1`.

use facts::pool::{Api, Ceiling, Holder, LimitedBy, Pool};
use findings::{Ask, Contradiction, Diagnosis, Finding};
use serde::Serialize;
use units::{Bytes, DeviceId};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    pools: Vec<PoolDocument<'a>>,
    findings: &'a [Finding],
    ask_for: &'a [Ask],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    contradictions: &'a [Contradiction],
}

#[derive(Serialize)]
struct PoolDocument<'a> {
    device: &'a DeviceId,
    api: Api,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
    ceilings: Vec<CeilingDocument<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_by: Vec<HolderDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unaccounted_bytes: Option<Bytes>,
}

#[derive(Serialize)]
struct CeilingDocument<'a> {
    name: &'a str,
    bytes: Bytes,
    source: &'a str,
    formula: &'a str,
    binds: bool,
}

#[derive(Serialize)]
struct HolderDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alive: Option<bool>,
}

fn ceiling(ceiling: &Ceiling) -> CeilingDocument<'_> {
    CeilingDocument {
        name: ceiling.name,
        bytes: ceiling.bytes,
        source: &ceiling.source.place,
        formula: &ceiling.formula,
        binds: ceiling.binds.is_some(),
    }
}

fn holder(holder: &Holder) -> HolderDocument<'_> {
    HolderDocument { pid: holder.pid, name: holder.name.as_deref(), bytes: holder.bytes, alive: holder.alive }
}

fn pool(pool: &Pool) -> PoolDocument<'_> {
    PoolDocument {
        device: &pool.device,
        api: pool.api,
        total_bytes: pool.total,
        used_bytes: pool.used,
        free_bytes: pool.free,
        limited_by: pool.limited_by,
        ceilings: pool.ceilings.iter().map(ceiling).collect(),
        held_by: pool.holders.iter().map(holder).collect(),
        unaccounted_bytes: pool.unaccounted,
    }
}

/// The document, pretty-printed, with a final newline.
pub fn document(diagnosis: &Diagnosis) -> String {
    let document = Document {
        schema: "vramwarden.doctor/1",
        pools: diagnosis.pools.iter().map(pool).collect(),
        findings: &diagnosis.findings,
        ask_for: &diagnosis.ask_for,
        contradictions: &diagnosis.contradictions,
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}
