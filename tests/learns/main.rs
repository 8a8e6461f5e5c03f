//! Learning tests.
