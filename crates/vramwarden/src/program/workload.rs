//! What is known of the workload from how it was started.

use std::ffi::OsString;
use std::path::Path;

use facts::host::env::concerns_memory;
use facts::{Facts, Known, Origin, Reading, Source, Workload};

/// Command names (or how they begin) and the program they belong to.
const PROGRAMS: &[(&str, &str)] = &[
    ("llama-", "llama.cpp"),
    ("llama_", "llama.cpp"),
    ("sd-server", "stable-diffusion.cpp"),
    ("sd-cli", "stable-diffusion.cpp"),
    ("vllm", "vllm"),
    ("ollama", "ollama"),
    ("koboldcpp", "koboldcpp"),
];

/// What a Python command line names, and the program it belongs to.
const MODULES: &[(&str, &str)] =
    &[("vllm", "vllm"), ("comfy", "ComfyUI"), ("diffusers", "diffusers"), ("transformers", "transformers")];

/// Commands that start another: what follows their options and variables is the program.
const WRAPPERS: &[&str] =
    &["env", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "taskset", "numactl"];

/// The longest command line kept, in bytes.
const LONGEST: usize = 4096;

/// The facts that a command line and our environment state.
pub fn facts(command: &[OsString]) -> Facts {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let workload = Workload {
        program: said(Some(program(&words))),
        api: said(api(&words).map(str::to_owned)),
        args: said(Some(line(&words))),
        ..Workload::default()
    };
    let mut facts = Facts { workload, ..Facts::default() };
    let given = words.iter().filter_map(|word| word.split_once('=')).take_while(|_| is(&words, &["env"]));
    let inherited = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (name, value) in inherited.chain(given) {
        if concerns_memory(&name) && value.len() <= LONGEST && !value.contains(char::is_control) {
            let source = Source::new(Origin::Host, name.as_str(), value.as_str());
            facts.env.insert(name, Known { value, source });
        }
    }
    facts
}

/// A value that the command line gives.
pub fn said<T>(value: Option<T>) -> Reading<T> {
    value.map_or_else(Reading::default, |value| {
        Reading::known(value, Source::new(Origin::Host, "the program under the doctor", ""))
    })
}

fn base(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}

fn is(words: &[String], names: &[&str]) -> bool {
    words.first().is_some_and(|word| names.contains(&base(word)))
}

fn program(words: &[String]) -> String {
    let mut words = words;
    while is(words, WRAPPERS) {
        let next = words[1..].iter().position(|word| !word.starts_with('-') && !word.contains('='));
        match next {
            Some(at) => words = &words[at + 1..],
            None => break,
        }
    }
    let name = words.first().map_or("", |word| base(word));
    let known = PROGRAMS.iter().find(|(begin, _)| name.starts_with(begin) || *begin == name);
    if let Some((_, program)) = known {
        return (*program).to_owned();
    }
    if name.starts_with("python") {
        let line = words[1..].join(" ").to_ascii_lowercase();
        if let Some((_, program)) = MODULES.iter().find(|(part, _)| line.contains(part)) {
            return (*program).to_owned();
        }
    }
    if name == "sd" { "stable-diffusion.cpp".to_owned() } else { name.to_owned() }
}

/// The API, where the command line leaves no doubt: the device it names, or the directory of its build.
fn api(words: &[String]) -> Option<&'static str> {
    let has = |part: &str| words.iter().any(|word| word.to_ascii_lowercase().contains(part));
    let device = |part: &str| {
        words.windows(2).any(|pair| {
            ["--device", "-dev"].contains(&pair[0].as_str()) && pair[1].to_ascii_lowercase().starts_with(part)
        })
    };
    let path = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    if device("vulkan") || path.contains("vulkan") {
        Some("vulkan")
    } else if device("rocm") || path.contains("rocm") || path.contains("hip") || has("vllm") || has("comfy") {
        Some("hip")
    } else {
        None
    }
}

/// The command line as a shell would take it, without what is secret.
fn line(words: &[String]) -> String {
    let mut line = String::new();
    let mut secret = false;
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        let lower = word.to_ascii_lowercase();
        let names = ["api-key", "token", "password", "secret"];
        let hides = word.starts_with('-')
            && names.iter().any(|name| lower.contains(name))
            && !lower.contains("tokens");
        match word.split_once('=') {
            Some((name, _)) if hides => line.push_str(&format!("{name}=…")),
            _ if secret => line.push('…'),
            _ => line.push_str(&quoted(word)),
        }
        secret = hides && !word.contains('=');
        if line.len() > LONGEST {
            line.truncate(line.floor_char_boundary_at(LONGEST));
            line.push('…');
            break;
        }
    }
    line
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// `str::floor_char_boundary`, which the oldest supported toolchain lacks.
trait Boundary {
    fn floor_char_boundary_at(&self, at: usize) -> usize;
}

impl Boundary for String {
    fn floor_char_boundary_at(&self, at: usize) -> usize {
        (0..=at.min(self.len())).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn programs_are_known_by_their_commands_also_behind_wrappers() {
        for (line, name, api_is) in [
            ("/opt/build-vulkan/bin/llama-server -m x.gguf", "llama.cpp", Some("vulkan")),
            ("llama-server -m x.gguf --device ROCm0", "llama.cpp", Some("hip")),
            ("env HSA_X=1 nice -n5 llama-cli -p hi", "llama.cpp", None),
            ("python3 -m vllm.entrypoints.openai.api_server", "vllm", Some("hip")),
            ("python3 train.py", "python3", None),
            ("sd -m x", "stable-diffusion.cpp", None),
            ("/bin/sh -c true", "sh", None),
        ] {
            assert_eq!((program(&words(line)).as_str(), api(&words(line))), (name, api_is), "{line}");
        }
    }

    #[test]
    fn secrets_of_a_command_line_are_not_repeated() {
        let line = |text| line(&words(text));
        assert_eq!(line("x --api-key abc -c 1"), "x --api-key … -c 1");
        assert_eq!(line("x --hf-token=abc --max-tokens 5"), "x --hf-token=… --max-tokens 5");
    }
}
