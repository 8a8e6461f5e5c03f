//! The pages of a Parquet file, which must not swell without end.
//!
//! The library allocates what a page's header claims, and unpacks gzip to its end whatever the header claims. So the
//! header is looked at before the library reads it, and a gzip page is unpacked into nothing first.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::stream::{MOST_SWELLING, SMALL};

/// A file whose pages are checked.
pub(super) struct Pages {
    file: File,
    /// Whether every read is one of a page; the footer, which comes first, is none.
    watched: Arc<AtomicBool>,
    /// What the last header claims its page unpacks to.
    claimed: AtomicU64,
}

impl Pages {
    /// Checks nothing until `watched` is set.
    pub(super) fn new(file: File, watched: Arc<AtomicBool>) -> Self {
        Self { file, watched, claimed: AtomicU64::new(0) }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Pages {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut reader = self.file.get_read(start)?;
        if self.watched.load(Ordering::Relaxed) {
            let (unpacked, packed) = sizes(reader.fill_buf()?).ok_or_else(|| refused("has an odd header"))?;
            if unpacked > SMALL.max(packed.saturating_mul(MOST_SWELLING)) {
                return Err(refused("swells more than any text does"));
            }
            self.claimed.store(unpacked, Ordering::Relaxed);
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.file.get_bytes(start, length)?;
        if self.watched.load(Ordering::Relaxed) && bytes.starts_with(b"\x1f\x8b") {
            let most = self.claimed.load(Ordering::Relaxed);
            let mut unpacked = MultiGzDecoder::new(&bytes[..]).take(most + 1);
            // What is no gzip ends with an error, which is the library's to report.
            if io::copy(&mut unpacked, &mut io::sink()).is_ok_and(|n| n > most) {
                return Err(refused("unpacks to more than its header says"));
            }
        }
        Ok(bytes)
    }
}

fn refused(what: &str) -> ParquetError {
    ParquetError::General(format!("a page {what}"))
}

/// The unpacked and packed bytes of a page, from its header in Thrift's compact form: the fields 1 (kind), 2 and 3, each
/// a zigzag varint behind the byte 0x15, as every writer puts them.
fn sizes(mut header: &[u8]) -> Option<(u64, u64)> {
    let mut field = || {
        header = header.strip_prefix(b"\x15")?;
        let end = header.iter().take(5).position(|byte| byte & 0x80 == 0)?;
        let (number, rest) = header.split_at(end + 1);
        header = rest;
        let zigzag = number.iter().rev().fold(0_u64, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
        (zigzag % 2 == 0).then_some(zigzag / 2)
    };
    field()?;
    Some((field()?, field()?))
}
