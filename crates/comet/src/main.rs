//! The binary `comet`: one process that is a name server, a broker or both, and the command line around it.
//!
//! `cli` has the flags, `serve` starts and stops roles, `produce` and `consume` are clients, `store` looks at
//! a store that no server uses, `log` sets up logging.

mod cli;
mod log;
mod settings;
mod address;
mod serve;
mod produce;
mod consume;
mod store;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("comet: {error:#}");
            ExitCode::FAILURE
        }
    }
}
