//! The bytes of a text file: decompressed where it is gzip, without a byte-order mark, and refused where it is no text.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::error::DataError;

/// How often larger than its file a gzip stream may become, beyond its first 64 MiB.
pub const MOST_SWELLING: u64 = 300;

/// Below this many bytes nobody minds the swelling.
pub(super) const SMALL: u64 = 1 << 26;

/// Bytes read at once.
const CHUNK: usize = 1 << 18;

/// Bytes looked at to tell what a file is.
const HEAD: usize = 512;

/// A file's text.
pub(super) struct Stream {
    /// The bytes behind a byte-order mark.
    pub(super) bytes: Box<dyn BufRead>,
    /// The first bytes of `bytes`, still to be read.
    pub(super) head: Vec<u8>,
}

/// Why a file does not begin like a text: `(magic, what it is, what would do)`.
const NO_TEXT: [(&[u8], &str, &str); 13] = [
    (b"version https://git-lfs", "a Git LFS pointer, not the data", "fetch the data with `git lfs pull`"),
    (b"<", "a web page or XML", "download the raw file (on dataset hubs: `resolve`, not `blob`)"),
    (b"\xff\xfe", "UTF-16 text", "convert it with `iconv -f utf-16 -t utf-8`"),
    (b"\xfe\xff", "UTF-16 text", "convert it with `iconv -f utf-16 -t utf-8`"),
    (b"\0\0\xfe\xff", "UTF-32 text", "convert it with `iconv -f utf-32 -t utf-8`"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "decompress it with `zstd -d`, or use gzip"),
    (b"BZh", "bzip2-compressed", "decompress it with `bzip2 -d`, or use gzip"),
    (b"\xfd7zXZ\0", "xz-compressed", "decompress it with `xz -d`, or use gzip"),
    (b"ARROW1", "an Arrow file", "write it as Parquet or JSON lines"),
    (b"SQLite format 3", "a SQLite database", "export the table as CSV"),
    (b"\x1f\x8b", "gzip inside gzip", "decompress it once with `gzip -d`"),
    (b"PAR1", "Parquet inside gzip", "decompress it with `gzip -d`"),
];

/// The first bytes of a file, without consuming them.
fn peek(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    Ok(reader.fill_buf()?.iter().copied().take(HEAD).collect())
}

/// Whether a file begins with Parquet's magic bytes. Devices and pipes, which have no end or no beginning, are refused.
pub(super) fn is_parquet(path: &Path) -> Result<bool, DataError> {
    let io = |source| DataError::Io { path: path.to_owned(), source };
    if !path.metadata().map_err(io)?.is_file() {
        return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
    }
    let mut magic = Vec::with_capacity(4);
    File::open(path).map_err(io)?.take(4).read_to_end(&mut magic).map_err(io)?;
    Ok(magic == b"PAR1")
}

impl Stream {
    /// Opens the text at `path`.
    ///
    /// # Errors
    /// [`DataError::Io`], or [`DataError::Container`] for what is no text.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let io = |source| DataError::Io { path: path.to_owned(), source };
        let consumed = Rc::new(Cell::new(0));
        let file = Counted { inner: File::open(path).map_err(io)?, count: consumed.clone() };
        let mut file = BufReader::with_capacity(CHUNK, file);
        let mut bytes: Box<dyn BufRead> = if peek(&mut file).map_err(io)?.starts_with(b"\x1f\x8b") {
            let text = Inflated { inner: MultiGzDecoder::new(file), consumed, produced: 0 };
            Box::new(BufReader::with_capacity(CHUNK, text))
        } else {
            Box::new(file)
        };
        let mut head = peek(&mut bytes).map_err(io)?;
        if head.starts_with(b"\xef\xbb\xbf") {
            bytes.consume(3);
            head.drain(..3);
        }
        refuse_what_is_no_text(path, &head)?;
        Ok(Self { bytes, head })
    }
}

fn refuse_what_is_no_text(path: &Path, head: &[u8]) -> Result<(), DataError> {
    let container = |found, cure| DataError::Container { path: PathBuf::from(path), found, cure };
    if let Some((_, found, cure)) = NO_TEXT.into_iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Err(container(found, cure));
    }
    // Every text a row can be made of has a letter or a bracket beside its first zero byte.
    match head.iter().position(|byte| *byte == 0) {
        Some(0 | 1) => {
            Err(container("UTF-16 or UTF-32 text without a mark", "convert it with `iconv -t utf-8`"))
        }
        Some(_) => Err(container("a binary file", "give JSON lines, a JSON array, CSV or Parquet")),
        None => Ok(()),
    }
}

/// A file that knows how much of it was read.
struct Counted {
    inner: File,
    count: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.set(self.count.get() + n as u64);
        Ok(n)
    }
}

/// A gzip stream that must not swell without end.
struct Inflated<R> {
    inner: MultiGzDecoder<R>,
    consumed: Rc<Cell<u64>>,
    produced: u64,
}

impl<R: BufRead> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof => "the gzip stream is cut off; fetch the file again".to_owned(),
                _ => format!("the gzip stream is damaged ({error}); fetch the file again"),
            };
            io::Error::new(error.kind(), what)
        })?;
        self.produced += n as u64;
        if self.produced > SMALL.max(self.consumed.get().saturating_mul(MOST_SWELLING)) {
            let what = format!(
                "the gzip stream swells more than {MOST_SWELLING}-fold, as no text does; if you trust it, decompress \
                 it with `gzip -d`"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(n)
    }
}
