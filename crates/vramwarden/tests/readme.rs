//! What README.md shows is what the program prints.

use std::path::Path;
use std::process::Command;

/// Lines of a fenced block and where they stand in the text.
fn transcripts(text: &str) -> Vec<(usize, &str)> {
    let opening = "```console\n";
    let blocks = text.match_indices(opening).map(|(at, _)| at + opening.len());
    blocks.map(|at| (at, &text[at..at + text[at..].find("\n```").expect("the block ends") + 1])).collect()
}

/// With `UPDATE_README=1` the README is mended instead.
#[test]
fn transcripts_are_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let mut mended = readme.clone();
    let blocks = transcripts(&readme);
    assert!(!blocks.is_empty());
    for (at, block) in blocks.into_iter().rev() {
        let (command, _) = block.split_once('\n').unwrap();
        let words: Vec<&str> = command.strip_prefix("$ vramwarden ").unwrap().split(' ').collect();
        let done =
            Command::new(env!("CARGO_BIN_EXE_vramwarden")).args(words).current_dir(&root).output().unwrap();
        let printed = format!("{command}\n{}", String::from_utf8(done.stdout).unwrap());
        mended.replace_range(at..at + block.len(), &printed);
    }
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, mended).unwrap();
    } else {
        assert!(
            readme == mended,
            "README.md shows another answer; mend it with: UPDATE_README=1 cargo test -p vramwarden --test readme"
        );
    }
}
