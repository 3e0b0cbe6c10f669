//! The redaction of a whole bundle.

use super::Bundle;
use crate::redact::Redactor;

impl Bundle {
    /// The bundle as it may leave the machine: tape, logs, facts and notes through one redactor, so that the same
    /// value has the same placeholder everywhere. Of process environments only variables that `keep` names stay.
    #[must_use]
    pub fn redacted(&self, redactor: &mut Redactor, keep: &dyn Fn(&str) -> bool) -> Self {
        let tape = redactor.tape(&self.tape, keep);
        let mut bundle = Self {
            program: self.program.clone(),
            created: self.created.clone(),
            tape,
            facts_json: self.facts_json.as_ref().map(|facts| redactor.json("facts.json", facts)),
            ..Self::default()
        };
        for log in &self.logs {
            let name = redactor.text("logs", &log.name);
            let bytes = redactor.bytes(&format!("logs/{name}"), &log.bytes);
            bundle.add_log(&name, bytes);
        }
        bundle.notes = self.notes.iter().map(|note| redactor.text("notes", note)).collect();
        bundle.notes.extend(redactor.notes());
        bundle.redactions = self.redactions.iter().cloned().chain(redactor.redactions()).collect();
        bundle
    }
}
