//! The redactor: any text and any names. Redacting twice changes nothing, and JSON stays JSON.
#![no_main]

use std::cell::RefCell;

use facts::redact::{Identity, Redactor};
use libfuzzer_sys::fuzz_target;

/// A redactor and how many texts it has seen. Making one compiles its patterns, which costs more than any text; it
/// remembers what it replaced, so it is made anew now and then.
struct Worn(Redactor, u32);

thread_local! {
    static SHARED: RefCell<Worn> = RefCell::new(Worn(Redactor::new(identity()), 0));
}

fn identity() -> Identity {
    let mut identity = Identity::default();
    identity.add_host("frodo-box.shire.example.org");
    identity.add_user("alice", Some("/home/alice"));
    identity
}

fn check(redactor: &mut Redactor, bytes: &[u8]) {
    let once = redactor.bytes("log", bytes);
    let twice = redactor.bytes("log", &once);
    assert_eq!(
        String::from_utf8_lossy(&once),
        String::from_utf8_lossy(&twice),
        "redacting twice changes nothing"
    );
    if let Ok(text) = std::str::from_utf8(bytes)
        && serde_json::from_str::<serde_json::Value>(text).is_ok()
    {
        let json = redactor.json("facts.json", text);
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON stays JSON");
    }
}

fuzz_target!(|input: (u8, &str, &str, &[u8])| {
    let (kind, host, user, bytes) = input;
    if kind == 0 {
        // Names are part of the patterns.
        let mut identity = identity();
        identity.add_host(host);
        identity.add_user(user, None);
        return check(&mut Redactor::new(identity), bytes);
    }
    SHARED.with_borrow_mut(|Worn(redactor, count)| {
        *count += 1;
        if count.is_multiple_of(10_000) {
            *redactor = Redactor::new(identity());
        }
        check(redactor, bytes);
    });
});
