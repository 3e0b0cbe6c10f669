//! Text from outside that cannot drive a terminal: logs, sheets, file and process names are anybody's.

use facts::Source;
use findings::Diagnosis;
use units::DeviceId;

/// Whether a character acts on what shows it: control characters, and those that turn the direction of text around.
fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with `�` in the place of what acts; blanks and line ends become blanks.
pub fn text(text: &str) -> String {
    let plain = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if acts(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(plain).collect()
}

fn mend(value: &mut String) {
    if value.contains(acts) {
        *value = text(value);
    }
}

fn mend_source(source: &mut Source) {
    if source.place.contains(acts) {
        source.place = text(&source.place).into();
    }
}

/// Every text of the answer, whichever format it is written in.
pub fn diagnosis(answer: &mut Diagnosis) {
    for pool in &mut answer.pools {
        if pool.device.to_string().contains(acts) {
            pool.device = DeviceId::bdf(&text(&pool.device.to_string()));
        }
        for ceiling in &mut pool.ceilings {
            mend(&mut ceiling.formula);
            mend_source(&mut ceiling.source);
        }
        pool.holders.iter_mut().filter_map(|holder| holder.name.as_mut()).for_each(mend);
    }
    for told in &mut answer.contradictions {
        for word in [&mut told.used, &mut told.set_aside] {
            mend(&mut word.value);
            mend(&mut word.source);
        }
    }
    for finding in &mut answer.findings {
        mend(&mut finding.title);
        mend(&mut finding.why);
        for evidence in &mut finding.evidence {
            mend(&mut evidence.source);
            if evidence.text.contains(acts) {
                evidence.text = text(&evidence.text);
                // It counted the bytes of the text as it was.
                evidence.span = None;
            }
        }
        for fix in &mut finding.fixes {
            mend(&mut fix.text);
            for part in [&mut fix.command, &mut fix.risk, &mut fix.undo, &mut fix.check].into_iter().flatten()
            {
                // A command may have several lines.
                let lines: Vec<String> = part.split('\n').map(text).collect();
                *part = lines.join("\n");
            }
        }
    }
    for ask in &mut answer.ask_for {
        mend(&mut ask.what);
        mend(&mut ask.why);
    }
}
