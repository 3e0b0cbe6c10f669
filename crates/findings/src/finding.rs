//! A diagnosis and its parts, as the contract's `vramwarden.doctor/1` has them.

use std::ops::Range;

use facts::Source;
use logs::Hit;
use serde::Serialize;

/// How bad it is, whatever the confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something will not work, or works worse than it could.
    Warning,
    /// Good to know.
    Info,
}

/// How sure the diagnosis is, whatever the severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The evidence admits no other cause.
    Certain,
    /// Other causes are possible and less probable.
    Likely,
    /// One of several.
    Possible,
}

/// The layer at which the cause sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// GPU firmware, BIOS.
    Firmware,
    /// Linux.
    Kernel,
    /// amdgpu, KFD, Mesa.
    Driver,
    /// HIP, ROCr.
    Runtime,
    /// PyTorch, rocBLAS, MIOpen, …
    Framework,
    /// llama.cpp, vLLM, …
    Program,
    /// Container or its limits.
    Container,
    /// RAM, disk, other processes.
    Host,
    /// What the user asked for.
    Settings,
}

/// What kind of step a fix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixKind {
    /// A kernel or module parameter.
    KernelParam,
    /// An environment variable.
    Env,
    /// A program's option.
    Flag,
    /// Another version of a package.
    Package,
    /// A BIOS setting.
    Bios,
    /// A command to run.
    Command,
    /// A change of the user's own code.
    Code,
    /// Wait, or accept.
    Wait,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Path, variable, or `log:line`.
    pub source: String,
    /// What it says.
    pub text: String,
    /// The part of `text` that matters, in bytes. For people only.
    #[serde(skip)]
    pub span: Option<Range<usize>>,
}

impl Evidence {
    /// Evidence by a sentence of one's own.
    pub fn new(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self { source: source.into(), text: text.into(), span: None }
    }

    /// A line of a log.
    pub fn line(hit: &Hit) -> Self {
        let times = if hit.count > 1 { format!(" ({} times)", hit.count) } else { String::new() };
        let source = format!("{}:{}{times}", hit.line.log, hit.line.number);
        Self { source, text: hit.text.clone(), span: Some(hit.span.clone()) }
    }

    /// A fact, with a sentence that says what it is.
    pub fn fact(source: &Source, text: impl Into<String>) -> Self {
        Self::new(&*source.place, text)
    }
}

/// A change of a file that `doctor --apply` can make. Paths are as on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file of our own, whole.
    File {
        /// Its path.
        path: String,
        /// What it shall hold.
        content: String,
    },
    /// A kernel parameter in files of the boot loader: /etc/default/grub, /etc/kernel/cmdline, entries.
    Word {
        /// The files' paths.
        paths: Vec<String>,
        /// The parameter, `ttm.pages_limit`.
        name: String,
        /// Its value; `None` takes the parameter away.
        value: Option<String>,
    },
    /// A value written to a file of sysfs.
    Sysfs {
        /// The file's path.
        path: String,
        /// What is written.
        value: String,
    },
}

/// A step that mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What kind of step.
    pub kind: FixKind,
    /// What to do and what it brings.
    pub text: String,
    /// What to type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What can go wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// How to take it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What to type to see that it took effect, and what that shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// What `doctor --apply` does of it; the rest of `command` is left to the user.
    #[serde(skip)]
    pub change: Option<Change>,
    /// What of `command` is left to type once the change is made, joined by ` && `.
    #[serde(skip)]
    pub after: Option<String>,
}

impl Fix {
    /// A step in words.
    pub fn new(kind: FixKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            command: None,
            risk: None,
            undo: None,
            check: None,
            change: None,
            after: None,
        }
    }

    /// With risk, undo and check of its kind, where the rule had nothing of its own to say.
    pub(crate) fn completed(mut self) -> Self {
        let (risk, undo) = usual(self.kind);
        self.risk.get_or_insert_with(|| risk.to_owned());
        self.undo.get_or_insert_with(|| undo.to_owned());
        self.check.get_or_insert_with(|| USUAL_CHECK.to_owned());
        self
    }

    /// Whether a text is what `completed` puts in: true of every step of its kind, and no news to a reader.
    pub fn is_usual(&self, text: &str) -> bool {
        let (risk, undo) = usual(self.kind);
        [risk, undo, USUAL_CHECK].contains(&text)
    }

    /// With what to type.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// With what can go wrong.
    pub fn risk(mut self, risk: impl Into<String>) -> Self {
        self.risk = Some(risk.into());
        self
    }

    /// With how to take it back.
    pub fn undo(mut self, undo: impl Into<String>) -> Self {
        self.undo = Some(undo.into());
        self
    }

    /// With what `doctor --apply` can do of it, and what is left to type then.
    pub fn change(mut self, change: Change, after: impl Into<String>) -> Self {
        self.change = Some(change);
        self.after = Some(after.into());
        self
    }

    /// With how to see that it took effect.
    pub fn check(mut self, check: impl Into<String>) -> Self {
        self.check = Some(check.into());
        self
    }
}

/// What proves any step, where nothing more direct does.
const USUAL_CHECK: &str = "vramwarden doctor --log run.log   # of the next run: this finding is gone";

/// Risk and undo that hold for every step of a kind.
fn usual(kind: FixKind) -> (&'static str, &'static str) {
    match kind {
        FixKind::KernelParam => {
            ("counts from the next boot on", "put the former parameters back, and reboot")
        }
        FixKind::Env => ("only programs started after it see it", "set the variable as it was, or unset it"),
        FixKind::Flag => {
            ("the program may run slower, or hold less", "start the program with its former options")
        }
        FixKind::Package => ("another version may behave differently", "install the former version"),
        FixKind::Bios => ("the menu differs by board", "set the former value in the BIOS"),
        FixKind::Command => {
            ("none that outlasts the command, unless said", "nothing is kept of it, unless said")
        }
        FixKind::Code => ("a change of your own program", "take the change back"),
        FixKind::Wait => ("none", "nothing was changed"),
    }
}

/// A diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The contract's id.
    pub id: &'static str,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Where the cause sits.
    pub layer: Layer,
    /// The answer, in one line.
    pub title: String,
    /// The reason.
    pub why: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What mends it, best first.
    pub fixes: Vec<Fix>,
    /// Ids of findings that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<&'static str>,
}

impl Finding {
    /// With a piece of evidence.
    pub fn because(mut self, evidence: Evidence) -> Self {
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
        self
    }

    /// With each of these pieces.
    pub fn because_of(self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        evidence.into_iter().fold(self, Self::because)
    }

    /// With a step that mends it.
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    /// With each of these steps.
    pub fn fixes(mut self, fixes: impl IntoIterator<Item = Fix>) -> Self {
        self.fixes.extend(fixes);
        self
    }

    /// With a finding that belongs to it.
    pub fn related(mut self, id: &'static str) -> Self {
        self.related.push(id);
        self
    }
}

/// Something that would decide, if it were known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// A file, a command, or a question.
    pub what: String,
    /// What it would decide.
    pub why: String,
}

impl Ask {
    /// Asks for `what`, because of `why`.
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}
