//! `vramwarden.doctor/1`.

use facts::pool::{Api, Ceiling, Holder, LimitedBy, Pool};
use findings::{Ask, Contradiction, Diagnosis, Finding};
use serde::Serialize;
use units::{Bytes, DeviceId};

use crate::program::Outcome;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    pools: Vec<PoolDocument<'a>>,
    findings: &'a [Finding],
    ask_for: &'a [Ask],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    contradictions: &'a [Contradiction],
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunDocument<'a>>,
}

/// The program that ran under the doctor.
#[derive(Serialize)]
struct RunDocument<'a> {
    program: &'a str,
    exit_status: i32,
    seconds: f64,
    pools_before: Vec<PoolDocument<'a>>,
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
    document_of(diagnosis, None)
}

/// The same, with how the program ended that ran under the doctor.
pub fn document_of(diagnosis: &Diagnosis, outcome: Option<&Outcome>) -> String {
    let document = Document {
        schema: "vramwarden.doctor/1",
        pools: diagnosis.pools.iter().map(pool).collect(),
        findings: &diagnosis.findings,
        ask_for: &diagnosis.ask_for,
        contradictions: &diagnosis.contradictions,
        run: outcome.map(|outcome| RunDocument {
            program: &outcome.program,
            exit_status: outcome.exit_status,
            seconds: outcome.seconds,
            pools_before: outcome.pools_before.iter().map(pool).collect(),
        }),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}
