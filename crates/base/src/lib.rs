//! The ground floor: what every crate may use and none has to fake. The time, and the table of configuration keys.
//! Knows no socket, no file and no message; depends on no other crate of the workspace.

#![forbid(unsafe_code)]

pub mod clock;
pub mod config;

pub use clock::Clock;
