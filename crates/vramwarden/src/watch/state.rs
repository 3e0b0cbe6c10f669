//! What has been spoken of, and so need not be again. No clock and no I/O: seconds are given.

use std::collections::VecDeque;

use findings::{Finding, Severity};
use serde::Serialize;

/// A finding that rests on lines of a log is over when no such line came for so long.
const LINGERS: u64 = 600;

/// One of the host is over when so many looks in a row do not show it: a figure may waver about a limit.
const LOOKS: u32 = 2;

/// The most events told in [`SPAN`] seconds.
const MOST: usize = 30;
const SPAN: u64 = 60;

/// The most findings remembered.
const REMEMBERED: usize = 256;

/// What happened to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// It was not there before.
    Appeared,
    /// It was a warning and is an error.
    Worse,
    /// It is over.
    Gone,
}

struct Active {
    key: String,
    finding: Finding,
    /// Whether it rests on lines of a log.
    logged: bool,
    seen: u64,
    missed: u32,
    /// The worst it was lately, and when it was that last.
    worst: (Severity, u64),
}

/// The findings that are there.
#[derive(Default)]
pub struct State {
    active: VecDeque<Active>,
    told: VecDeque<u64>,
    held_back: u64,
}

impl State {
    /// Compares with what is found at second `now`, and tells what changed. `of_host` says of a finding whether the
    /// host alone shows it.
    pub fn update(
        &mut self,
        found: &[Finding],
        of_host: impl Fn(&Finding) -> bool,
        now: u64,
    ) -> Vec<(Event, Finding)> {
        let found: Vec<(String, &Finding)> = found
            .iter()
            .filter(|finding| finding.severity != Severity::Info)
            .map(|finding| (key(finding), finding))
            .collect();
        let mut events = Vec::new();
        for active in &mut self.active {
            active.missed += 1;
        }
        for (key, finding) in &found {
            // The same trouble may be told in other words once more is known of it.
            let at = self.active.iter().position(|active| active.key == *key).or_else(|| {
                self.active.iter().position(|active| {
                    active.finding.id == finding.id
                        && !found.iter().any(|(other, _)| *other == active.key)
                        && (finding.severity < active.finding.severity || of_host(finding))
                })
            });
            let Some(active) = at.and_then(|at| self.active.get_mut(at)) else {
                let logged = !of_host(finding);
                let finding = (*finding).clone();
                events.push((Event::Appeared, finding.clone()));
                let worst = (finding.severity, now);
                self.active.push_back(Active {
                    key: key.clone(),
                    finding,
                    logged,
                    seen: now,
                    missed: 0,
                    worst,
                });
                continue;
            };
            // Severities are ordered from the worst.
            let (mut worst, mut when) = active.worst;
            if finding.severity > worst && now.saturating_sub(when) >= LINGERS {
                worst = finding.severity;
            }
            if finding.severity <= worst {
                when = now;
            }
            if finding.severity < worst {
                worst = finding.severity;
                events.push((Event::Worse, (*finding).clone()));
            }
            *active = Active {
                key: key.clone(),
                finding: (*finding).clone(),
                logged: !of_host(finding),
                seen: now,
                missed: 0,
                worst: (worst, when),
            };
        }
        let over = |active: &Active| {
            if active.logged { now.saturating_sub(active.seen) >= LINGERS } else { active.missed >= LOOKS }
        };
        self.active.retain(|active| {
            if over(active) {
                events.push((Event::Gone, active.finding.clone()));
            }
            !over(active)
        });
        while self.active.len() > REMEMBERED {
            self.active.pop_front();
        }
        events
    }

    /// Whether one more may be told at second `now`; one that may not is counted.
    pub fn may_tell(&mut self, now: u64) -> bool {
        self.told.retain(|told| now.saturating_sub(*told) < SPAN);
        let may = self.told.len() < MOST;
        if may {
            self.told.push_back(now);
        } else {
            self.held_back += 1;
        }
        may
    }

    /// How many were held back, once telling is possible again.
    pub fn held_back(&mut self, now: u64) -> Option<u64> {
        let quiet = self.told.iter().filter(|told| now.saturating_sub(**told) < SPAN).count() < MOST;
        (quiet && self.held_back > 0).then(|| std::mem::take(&mut self.held_back))
    }
}

/// What makes two findings the same: the id and the title without its figures.
pub fn key(finding: &Finding) -> String {
    let mut key = finding.id.to_owned();
    for word in finding.title.split_ascii_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let figure = bare.parse::<f64>().is_ok() || ["B", "KiB", "MiB", "GiB", "TiB"].contains(&bare);
        key.push(' ');
        key.push_str(if figure { "#" } else { word });
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use findings::{Confidence, Layer};

    fn finding(severity: Severity, title: &str) -> Finding {
        Finding {
            id: "host-memory-exhausted",
            severity,
            confidence: Confidence::Likely,
            layer: Layer::Host,
            title: title.to_owned(),
            why: String::new(),
            evidence: Vec::new(),
            fixes: Vec::new(),
            related: Vec::new(),
        }
    }

    fn events(state: &mut State, found: &[Finding], host: bool, now: u64) -> Vec<Event> {
        state.update(found, |_| host, now).into_iter().map(|(event, _)| event).collect()
    }

    #[test]
    fn a_finding_is_spoken_of_once_whatever_its_figures_and_again_when_it_is_worse() {
        let mut state = State::default();
        let low = |figure: &str| finding(Severity::Warning, &format!("the host has {figure} of RAM left"));
        assert_eq!(events(&mut state, &[low("900 MiB")], true, 0), [Event::Appeared]);
        assert_eq!(events(&mut state, &[low("0.7 GiB")], true, 5), []);
        let killed = finding(Severity::Error, "the host ran out of RAM");
        assert_eq!(events(&mut state, std::slice::from_ref(&killed), false, 10), [Event::Worse]);
        assert_eq!(events(&mut state, std::slice::from_ref(&killed), false, 15), []);
        // Each error line makes the warning an error for a while: that is no news each time.
        assert_eq!(events(&mut state, &[low("1 GiB")], true, 50), []);
        assert_eq!(events(&mut state, &[killed], false, 90), []);
    }

    #[test]
    fn what_the_host_shows_is_gone_after_two_looks_and_what_a_log_said_after_ten_minutes() {
        let mut state = State::default();
        let one = [finding(Severity::Error, "x")];
        assert_eq!(events(&mut state, &one, true, 0), [Event::Appeared]);
        assert_eq!(events(&mut state, &[], true, 5), []);
        assert_eq!(events(&mut state, &[], true, 10), [Event::Gone]);
        assert_eq!(events(&mut state, &one, false, 20), [Event::Appeared]);
        assert_eq!(events(&mut state, &[], false, 619), []);
        assert_eq!(events(&mut state, &[], false, 620), [Event::Gone]);
    }

    #[test]
    fn infos_are_not_spoken_of_and_two_victims_are_two_findings() {
        let mut state = State::default();
        assert_eq!(events(&mut state, &[finding(Severity::Info, "x")], true, 0), []);
        let kill = |name: &str, pid: u32| finding(Severity::Error, &format!("{name} (pid {pid}) was killed"));
        assert_eq!(events(&mut state, &[kill("a", 1)], false, 0), [Event::Appeared]);
        assert_eq!(events(&mut state, &[kill("a", 2)], false, 1), []);
        assert_eq!(events(&mut state, &[kill("b", 3)], false, 2), [Event::Appeared]);
    }

    #[test]
    fn a_flood_is_held_back_and_counted() {
        let mut state = State::default();
        let told = (0..100).filter(|_| state.may_tell(0)).count();
        assert_eq!((told, state.held_back(1), state.held_back(60)), (MOST, None, Some(70)));
        assert!(state.may_tell(60));
    }
}
