//! The rules, judged by cases: data under `tests/cases/`, one file per finding id and some that mix them.
//!
//! A case is one JSON object a line:
//!
//! | key | meaning |
//! |---|---|
//! | `name` | what it is, in words; unique |
//! | `host` | a host of `hosts.json` that `facts` is laid over |
//! | `facts` | a partial facts sheet without its `schema`; sizes may be texts such as `"96 GiB"` |
//! | `log` | lines of one log |
//! | `first` | ids of which one has to be the first finding; empty: no warning and no error |
//! | `has` | ids that have to be reported, at any severity |
//! | `not` | ids that must not be the first finding, nor any error that is more than possible |
//! | `absent` | ids that must not be reported at all |
//! | `fix` | texts in lower case of which one has to stand in a fix of the first finding |
//! | `ask` | the same for what is asked for |
//! | `error` | whether the whole has to end with an error (exit status 1) |
//! | `note` | for the reader |

mod cases;
mod coverage;
mod doctor;
mod properties;
mod signatures;
