//! `vramwarden.facts/1`: facts as a JSON sheet, partial or whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::model::*;
use crate::object::{maybe_objects, object, objects};
use crate::reading::{Known, Origin, Reading, Source};

/// The schema this build reads and writes.
pub const SCHEMA: &str = "vramwarden.facts/1";

/// Why a sheet was refused. The text says where and how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum SheetError {
    /// Not JSON at all, or cut off.
    #[error(
        "{name}:{line}:{column}: not valid JSON: {message}; a sheet is one JSON object of schema {SCHEMA}"
    )]
    Syntax {
        /// Name of the sheet.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser said.
        message: String,
    },
    /// A value of another type than the field's.
    #[error("{name}:{line}:{column}: {path}: {message} (sizes are whole bytes, times are seconds)")]
    Type {
        /// Name of the sheet.
        name: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Path of the field.
        path: String,
        /// What the parser said.
        message: String,
    },
    /// Another schema, or another version of this one.
    #[error(
        "{name}: schema is {found:?}, and this build reads {SCHEMA:?}; write the sheet anew or use the matching version"
    )]
    Schema {
        /// Name of the sheet.
        name: String,
        /// What was found.
        found: String,
    },
}

/// A sheet as read: its facts, and the keys that were not understood.
#[derive(Debug)]
pub struct Sheet {
    /// The facts, each with its path in the sheet as source.
    pub facts: Facts,
    /// One line for each key that is not known.
    pub warnings: Vec<String>,
}

/// Makes readings that name the sheet and the field.
pub(crate) struct Stated {
    name: String,
}

impl Stated {
    fn source<T: Serialize>(&self, value: &T, path: &str) -> Source {
        let mut text = serde_json::to_string(value).unwrap_or_default();
        if text.chars().count() > 160 {
            text = text.chars().take(159).collect::<String>() + "…";
        }
        Source::new(Origin::Sheet, format!("{}:{path}", self.name), text)
    }

    pub(crate) fn reading<T: Serialize>(&self, value: Option<T>, path: &str, key: &str) -> Reading<T> {
        value.map_or_else(Reading::default, |value| {
            let source = self.source(&value, &format!("{path}.{key}"));
            Reading::known(value, source)
        })
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Document {
    schema: Option<String>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    platform: PlatformSheet,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    kernel: KernelSheet,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    memory: MemorySheet,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    ttm: TtmSheet,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    amdgpu: AmdgpuSheet,
    #[serde(deserialize_with = "objects")]
    gpus: Vec<GpuSheet>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "maybe_objects")]
    processes: Option<Vec<Process>>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    container: ContainerSheet,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    access: AccessSheet,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    software: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "objects")]
    shown: Vec<Shown>,
    #[serde(skip_serializing_if = "is_default", deserialize_with = "object")]
    workload: WorkloadSheet,
}

/// Reads a sheet. `name` is what messages and sources call it.
///
/// # Errors
/// Text that is no JSON object, a value of the wrong type (with its path, line and column), or another schema.
pub fn read(name: &str, text: &str) -> Result<Sheet, SheetError> {
    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let result: Result<Document, serde_json::Error> = {
        let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
        let mut ignored = |path: serde_ignored::Path<'_>| unknown.push(path.to_string());
        object(serde_ignored::Deserializer::new(tracked, &mut ignored))
    };
    let document = result.and_then(|document| json.end().map(|()| document)).map_err(|error| {
        // serde_json counts a document that is of the wrong type as a whole at column 0.
        let (line, column) = (error.line(), error.column().max(1));
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what).to_owned();
        let name = name.to_owned();
        if error.is_data() {
            SheetError::Type { name, line, column, path: place(&track.path().to_string()), message }
        } else {
            SheetError::Syntax { name, line, column, message }
        }
    })?;

    let mut warnings = Vec::new();
    match document.schema.as_deref() {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(SheetError::Schema { name: name.to_owned(), found: other.to_owned() });
        }
        None => warnings.push(format!("{name}: no schema stated; read as {SCHEMA}")),
    }
    let is_note = |path: &String| path == "note" || path.ends_with(".note");
    // serde_ignored names list items with their index and optional values with `?`.
    let plain = |path: String| indexed(&path.replace(".?", "").replace("?.", ""));
    warnings.extend(
        unknown
            .into_iter()
            .map(plain)
            .filter(|path| !is_note(path))
            .map(|path| format!("{name}: key {path} is not known and was ignored")),
    );
    Ok(Sheet { facts: facts_of(document, &Stated { name: name.to_owned() }), warnings })
}

/// The path of a field, or what is meant where the whole document is.
fn place(path: &str) -> String {
    if path == "." { "the document".to_owned() } else { path.to_owned() }
}

/// `gpus.0.name` as `gpus[0].name`.
fn indexed(path: &str) -> String {
    let mut text = String::new();
    for part in path.split('.') {
        if part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty() {
            text += &format!("[{part}]");
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text += part;
        }
    }
    text
}

fn facts_of(document: Document, stated: &Stated) -> Facts {
    let known = |map: BTreeMap<String, String>, path: &str| -> BTreeMap<String, Known<String>> {
        map.into_iter()
            .map(|(key, value)| {
                let source = stated.source(&value, &format!("{path}.{key}"));
                (key, Known { value, source })
            })
            .collect()
    };
    Facts {
        platform: Platform::from_sheet(document.platform, stated, "platform"),
        kernel: Kernel::from_sheet(document.kernel, stated, "kernel"),
        memory: Memory::from_sheet(document.memory, stated, "memory"),
        ttm: Ttm::from_sheet(document.ttm, stated, "ttm"),
        amdgpu: Amdgpu::from_sheet(document.amdgpu, stated, "amdgpu"),
        gpus: document
            .gpus
            .into_iter()
            .enumerate()
            .map(|(at, gpu)| Gpu::from_sheet(gpu, stated, &format!("gpus[{at}]")))
            .collect(),
        gpus_seen: Reading::default(),
        processes: document.processes.map_or_else(Reading::default, |list| {
            let source = stated.source(&list, "processes");
            Reading::known(list, source)
        }),
        processes_hidden: Reading::default(),
        container: Container::from_sheet(document.container, stated, "container"),
        access: Access::from_sheet(document.access, stated, "access"),
        software: known(document.software, "software"),
        env: known(document.env, "env"),
        shown: document
            .shown
            .into_iter()
            .enumerate()
            .map(|(at, shown)| {
                let source = stated.source(&shown, &format!("shown[{at}]"));
                Known { value: shown, source }
            })
            .collect(),
        workload: Workload::from_sheet(document.workload, stated, "workload"),
        conflicts: Vec::new(),
    }
}

/// Writes facts as a sheet, pretty-printed. Values that are not known are absent; sources are not written.
pub fn write(facts: &Facts) -> String {
    let plain = |map: &BTreeMap<String, Known<String>>| {
        map.iter().map(|(key, known)| (key.clone(), known.value.clone())).collect()
    };
    let document = Document {
        schema: Some(SCHEMA.to_owned()),
        platform: facts.platform.to_sheet(),
        kernel: facts.kernel.to_sheet(),
        memory: facts.memory.to_sheet(),
        ttm: facts.ttm.to_sheet(),
        amdgpu: facts.amdgpu.to_sheet(),
        gpus: facts.gpus.iter().map(Gpu::to_sheet).collect(),
        processes: facts.processes.value().cloned(),
        container: facts.container.to_sheet(),
        access: facts.access.to_sheet(),
        software: plain(&facts.software),
        env: plain(&facts.env),
        shown: facts.shown.iter().map(|known| known.value.clone()).collect(),
        workload: facts.workload.to_sheet(),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Bytes;

    const SHEET: &str = r#"{
 "schema": "vramwarden.facts/1",
 "note": "a note is no key",
 "kernel": {"release": "6.18.4", "note": "nor here"},
 "gpus": [{"gfx": "gfx1151", "apu": true, "vram_total_bytes": 536870912, "vulkan": {"driver": "radv"}}],
 "processes": [],
 "env": {"GGML_CUDA_ENABLE_UNIFIED_MEMORY": "0"}
}"#;

    #[test]
    fn a_partial_sheet_is_read_with_paths_as_sources_and_the_rest_unknown() {
        let sheet = read("host.json", SHEET).unwrap();
        assert_eq!(sheet.warnings, Vec::<String>::new());
        let gpu = &sheet.facts.gpus[0];
        assert_eq!(gpu.vram_total.get(), Some(Bytes::mib(512)));
        assert_eq!(&*gpu.vram_total.source().unwrap().place, "host.json:gpus[0].vram_total_bytes");
        assert_eq!(&*gpu.vulkan.driver.source().unwrap().place, "host.json:gpus[0].vulkan.driver");
        assert!(!gpu.gtt_total.is_known());
        assert_eq!(sheet.facts.processes.value().map(Vec::len), Some(0));
    }

    #[test]
    fn a_wrong_type_names_path_line_and_column() {
        let wrong = SHEET.replace("536870912", "\"96 GiB\"");
        let error = read("host.json", &wrong).unwrap_err().to_string();
        assert!(error.starts_with("host.json:5:"), "{error}");
        assert!(error.contains("gpus[0].vram_total_bytes: invalid type: string \"96 GiB\""), "{error}");
    }

    #[test]
    fn another_version_is_refused_and_unknown_keys_are_named() {
        let error = read("h", r#"{"schema": "vramwarden.facts/2"}"#).unwrap_err().to_string();
        assert!(error.contains("vramwarden.facts/2") && error.contains("vramwarden.facts/1"), "{error}");
        let sheet =
            read("h", r#"{"schema": "vramwarden.facts/1", "gpus": [{"colour": 1}], "x": {}}"#).unwrap();
        assert_eq!(
            sheet.warnings,
            ["h: key gpus[0].colour is not known and was ignored", "h: key x is not known and was ignored"]
        );
    }

    #[test]
    fn text_that_is_no_sheet_is_refused_in_one_line() {
        for text in [
            "",
            "[",
            "null",
            "[]",
            "42",
            "{\"gpus\": {}}",
            "{\"gpus\": [[1]]}",
            "{\"memory\": [1, 2]}",
            "{} trailing",
            "{\"memory\": {\"total_bytes\": -1}}",
        ] {
            let error = read("h", text).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{text}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let facts = read("a", SHEET).unwrap().facts;
        let again = read("a", &write(&facts)).unwrap();
        assert_eq!(again.warnings, Vec::<String>::new());
        assert_eq!(again.facts, facts);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = read("h", &text);
        }

        #[test]
        fn no_cut_of_a_sheet_makes_it_panic(at in 0..SHEET.len()) {
            let _ = read("h", SHEET.get(..at).unwrap_or_default());
        }
    }
}
