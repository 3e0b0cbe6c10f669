//! The redactor: any text and any names. Redacting twice changes nothing, and JSON stays JSON.
#![no_main]

use facts::redact::{Identity, Redactor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (host, user, bytes) = input;
    let mut identity = Identity::default();
    identity.add_host("frodo-box.shire.example.org");
    identity.add_user("alice", Some("/home/alice"));
    // Names are compiled into the redactor's patterns, so any name is tried too, though seldom: it costs most.
    if bytes.first().is_some_and(|b| b % 16 == 0) {
        identity.add_host(host);
        identity.add_user(user, None);
    }
    let mut redactor = Redactor::new(identity);
    let once = redactor.bytes("log", bytes);
    let twice = redactor.bytes("log", &once);
    assert_eq!(
        String::from_utf8_lossy(&once),
        String::from_utf8_lossy(&twice),
        "redacting twice changes nothing"
    );
    if let Ok(text) = std::str::from_utf8(bytes) {
        if serde_json::from_str::<serde_json::Value>(text).is_ok() {
            let json = redactor.json("facts.json", text);
            serde_json::from_str::<serde_json::Value>(&json).expect("JSON stays JSON");
        }
    }
});
