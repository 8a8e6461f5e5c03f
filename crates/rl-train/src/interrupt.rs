//! Ctrl-C and SIGTERM: the first asks the run to save and stop, the second ends it.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal sets [`requested`]; a second one exits with 130 at once.
pub fn listen() {
    // An error means that a handler is there already.
    let _ = ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            crate::live::screen::give_back();
            std::process::exit(130);
        }
        if crate::live::screen::taken() {
            return;
        }
        eprintln!("\nstopping after this update; again to stop at once");
    });
}

/// Asks the run to save and stop, as a signal does.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Whether someone asked to stop.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
