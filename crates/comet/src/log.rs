//! Logging of the server roles: to standard error, one line an event. `RUST_LOG` chooses what; colour only on a terminal.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let colour = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
}
