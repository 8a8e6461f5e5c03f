//! Ctrl-C and SIGTERM: the first asks the run to save and stop, the second ends it.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal sets [`requested`]; a second one exits with 130 at once.
pub fn listen() {
    // An error means that a handler is there already.
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nstopping after this update; again to stop at once");
    });
}

/// Whether someone asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
