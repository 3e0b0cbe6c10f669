//! Which names and texts a bundle carries.

use super::limits::PATH_BYTES;

/// Text that may stand in a manifest: no control characters, so that printing it is safe.
pub(super) fn clean(text: &str) -> bool {
    text.len() <= PATH_BYTES && !text.chars().any(char::is_control)
}

/// A path as a question asks for it.
pub(super) fn is_question(path: &str) -> bool {
    path.starts_with('/') && clean(path)
}

/// A path below a directory: relative, without empty, `.` or `..` components.
pub(super) fn is_plain(path: &str) -> bool {
    clean(path) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// One plain component.
pub(super) fn is_component(name: &str) -> bool {
    is_plain(name) && !name.contains('/')
}

/// A name a bundle can carry, from one that a user gave.
pub(super) fn log_name(given: &str) -> String {
    let last = given.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).take(100).collect();
    match name.as_str() {
        "" | "." | ".." | "-" => "log".to_owned(),
        _ => name,
    }
}
