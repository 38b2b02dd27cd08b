//! What all targets share: an allocator that counts, and [`bounded`], which ends the process when the work on one input
//! holds more memory than the input justifies. libFuzzer then keeps the input, as for any crash.
//!
//! One thread allocates here, so the counters need no order among themselves.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::sync::Once;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// What any input may take, whatever its length, bytes.
pub const SLACK: usize = 64 * 1024;

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

/// Bytes allocated since [`bounded`] began, less those freed.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);

/// For the summary at exit: the largest peak of an input, and the most bytes a byte of input took beyond the slack.
static PEAK_EVER: AtomicUsize = AtomicUsize::new(0);
static FACTOR_EVER: AtomicUsize = AtomicUsize::new(0);

fn grew(by: usize) {
    let by = isize::try_from(by).unwrap_or(isize::MAX);
    let live = LIVE.fetch_add(by, Relaxed).saturating_add(by);
    PEAK.fetch_max(live, Relaxed);
    let limit = LIMIT.load(Relaxed);
    if live > limit {
        LIMIT.store(isize::MAX, Relaxed);
        eprintln!("over-allocation: {live} bytes are held, {limit} are allowed\n{}", Backtrace::force_capture());
        std::process::abort();
    }
}

fn shrank(by: usize) {
    LIVE.fetch_sub(isize::try_from(by).unwrap_or(isize::MAX), Relaxed);
}

// SAFETY: every call goes to `System` as it came; counting neither allocates nor unwinds below the limit, and beyond it
// the process ends.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        shrank(layout.size());
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist for a moment; counting the growth alone is what a caller asked for.
        if size > layout.size() {
            grew(size - layout.size())
        } else {
            shrank(layout.size() - size)
        }
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Runs what the server does with an input of `len` bytes. It may hold `factor * len + SLACK` bytes at a time, its result
/// included. What a target does to check the result belongs outside.
pub fn bounded<R>(len: usize, factor: usize, work: impl FnOnce() -> R) -> R {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        unsafe extern "C" {
            fn atexit(then: extern "C" fn()) -> i32;
        }
        // SAFETY: the C library's; `summary` touches nothing but statics and stderr.
        unsafe { atexit(summary) };
        // What a panic prints takes more than the slack, and must not wait for its own backtrace's lock.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            LIMIT.store(isize::MAX, Relaxed);
            hook(panic);
        }));
    });
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    LIMIT.store((factor * len + SLACK) as isize, Relaxed);
    let result = work();
    LIMIT.store(isize::MAX, Relaxed);
    let peak = PEAK.load(Relaxed).max(0) as usize;
    PEAK_EVER.fetch_max(peak, Relaxed);
    FACTOR_EVER.fetch_max(peak.saturating_sub(SLACK).div_ceil(len.max(1)), Relaxed);
    result
}

extern "C" fn summary() {
    let (peak, factor) = (PEAK_EVER.load(Relaxed), FACTOR_EVER.load(Relaxed));
    eprintln!("allocation: at most {peak} bytes for one input; beyond {SLACK}, {factor} a byte of input");
}
