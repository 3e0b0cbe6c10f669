//! The program from outside: what it prints, and how it ends.

mod apply;
mod bad_input;
mod bundles;
mod common;
mod derivation;
mod goldens;
mod hostile_text;
mod program;
mod recorded;
mod sleeping;
mod watch;
