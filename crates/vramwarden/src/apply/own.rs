//! Files of our own hold what several findings asked for: setting one parameter keeps the others.

/// `old` with what `new` says, which is one parameter.
///
/// # Errors
/// `old` is not as we write it.
pub fn joined(path: &str, old: &str, new: &str) -> Result<String, String> {
    if old.is_empty() || old == new {
        return Ok(new.to_owned());
    }
    if path.ends_with(".nix") { nix(old, new) } else { Ok(modprobe(old, new)) }
}

/// Module and parameter of `options MODULE NAME=VALUE`; `None` for another line.
fn option(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (Some("options"), Some(module), Some(word), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return None;
    };
    Some((module, word.split('=').next()?))
}

fn modprobe(old: &str, new: &str) -> String {
    let set: Vec<_> = new.lines().filter_map(option).collect();
    let kept = old.lines().filter(|line| !option(line).is_some_and(|option| set.contains(&option)));
    kept.chain(new.lines()).flat_map(|line| [line, "\n"]).collect()
}

/// The words between `[` and `]` of `boot.kernelParams`, and what is around them.
fn params(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let start = text.find("boot.kernelParams = [")? + "boot.kernelParams = [".len();
    let end = start + text[start..].find(']')?;
    let words: Vec<&str> = text[start..end].split_ascii_whitespace().collect();
    let quoted = |word: &&str| word.len() > 1 && word.starts_with('"') && word.ends_with('"');
    words.iter().all(quoted).then_some((&text[..start], words, &text[end..]))
}

fn nix(old: &str, new: &str) -> Result<String, String> {
    let (Some((head, old, tail)), Some((_, new, _))) = (params(old), params(new)) else {
        return Err("has no plain list boot.kernelParams; set the parameter there by hand".to_owned());
    };
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let set: Vec<String> = new.iter().map(|word| name(word)).collect();
    let kept = old.into_iter().filter(|word| !set.contains(&name(word)));
    let words: Vec<&str> = kept.chain(new).collect();
    Ok(format!("{head} {} {tail}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_is_set_and_the_others_stay() {
        let path = "/etc/modprobe.d/vramwarden-amdgpu.conf";
        let old = "# mine\noptions amdgpu a=1\noptions amdgpu b=2\n";
        assert_eq!(
            joined(path, old, "options amdgpu a=3\n").unwrap(),
            "# mine\noptions amdgpu b=2\noptions amdgpu a=3\n"
        );
        assert_eq!(joined(path, "", "options amdgpu a=3\n").unwrap(), "options amdgpu a=3\n");
        let nix = |words: &str| format!("{{ ... }}: {{\n  boot.kernelParams = [ {words} ];\n}}\n");
        let path = "/etc/nixos/vramwarden.nix";
        assert_eq!(joined(path, &nix("\"a=1\" \"b=2\""), &nix("\"a=3\"")).unwrap(), nix("\"b=2\" \"a=3\""));
        assert!(joined(path, "{ }", &nix("\"a=3\"")).is_err());
    }
}
