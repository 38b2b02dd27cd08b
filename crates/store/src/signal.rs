//! How threads of the store wait for each other.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::store::lock;

/// A flag that a thread waits for.
#[derive(Default)]
pub(crate) struct Signal {
    pub(crate) raised: Mutex<bool>,
    pub(crate) condvar: Condvar,
}

impl Signal {
    pub(crate) fn raise(&self) {
        let mut raised = lock(&self.raised);
        if !*raised {
            *raised = true;
            self.condvar.notify_all();
        }
    }

    /// Waits until raised or `timeout` passed, and lowers it.
    pub(crate) fn wait(&self, timeout: Duration) {
        let raised = lock(&self.raised);
        let (mut raised, _) =
            self.condvar.wait_timeout_while(raised, timeout, |r| !*r).unwrap_or_else(PoisonError::into_inner);
        *raised = false;
    }

    /// Wakes whoever waits on the condition variable for something else than the flag.
    pub(crate) fn notify(&self) {
        let _guard = lock(&self.raised);
        self.condvar.notify_all();
    }
}
