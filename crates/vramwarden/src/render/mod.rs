//! Writing an answer: plain for people, JSON by the contract, Markdown for an issue. Renderers decide nothing.

pub mod json;
pub mod markdown;
pub mod plain;
mod pools;
mod unread;
