//! Small files that unpack to large ones: refused, in memory that does not depend on what they claim.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rl_envs::preference::{Dataset, MOST_ROW_BYTES, ReadOptions};

use crate::memory::load;

/// Four rows of the longest kind: what a bomb may take before it is refused.
const MOST: u64 = 4 * MOST_ROW_BYTES as u64;

fn gzip(chunk: &[u8], times: usize, head: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(head).unwrap();
    (0..times).for_each(|_| encoder.write_all(chunk).unwrap());
    encoder.finish().unwrap()
}

/// Pairs as Parquet.
fn parquet(path: &Path, codec: Codec, rows: &[[Vec<u8>; 3]]) {
    let schema = "message pairs { required binary prompt (UTF8); required binary chosen (UTF8);
                  required binary rejected (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false).build();
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in 0..3 {
        let values: Vec<ByteArray> = rows.iter().map(|row| row[column].clone().into()).collect();
        let mut writer = group.next_column().unwrap().unwrap();
        writer.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        writer.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn row(chosen: Vec<u8>) -> [Vec<u8>; 3] {
    [b"2 + 2?".to_vec(), chosen, b" 5".to_vec()]
}

#[test]
fn gzip_bombs_are_refused_in_the_memory_of_a_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mib = vec![b'\n'; 1 << 20];
    let xs = vec![b'x'; 1 << 20];
    for (name, bytes, said) in [
        ("blank.jsonl.gz", gzip(&mib, 160, b""), "swells"),
        ("line.jsonl.gz", gzip(&xs, 160, b"{\"prompt\": \""), "swells"),
        ("element.json.gz", gzip(&xs, 160, b"[{\"prompt\": \""), "swells"),
        ("cell.csv.gz", gzip(&xs, 160, b"prompt,chosen,rejected\n\"p"), "longer than"),
        ("deep.json.gz", gzip(&vec![b'['; 1 << 20], 160, b"["), "swells"),
    ] {
        let path = folder.path().join(name);
        assert!(bytes.len() < 2 << 20, "{name} is no bomb: {} bytes", bytes.len());
        fs::write(&path, bytes).unwrap();
        let (outcome, grown) = load("preference", &path);
        assert!(outcome.contains(name) && outcome.contains(said), "{outcome}");
        assert!(grown < MOST, "{name} took {grown} bytes");
    }
}

#[test]
fn parquet_in_every_codec_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let gz = Codec::GZIP(GzipLevel::default());
    for codec in [Codec::UNCOMPRESSED, Codec::SNAPPY, Codec::ZSTD(ZstdLevel::default()), gz] {
        parquet(&path, codec, &[row(b" 4".to_vec()), row(vec![b'4'; 100_000])]);
        let data = Dataset::load(&path, &ReadOptions::default()).unwrap();
        assert_eq!((data.pairs[0].chosen.as_str(), data.pairs[1].chosen.len()), (" 4", 100_000));
    }
}

#[test]
fn parquet_bombs_are_refused_in_the_memory_of_a_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    for codec in [Codec::ZSTD(ZstdLevel::default()), Codec::GZIP(GzipLevel::default())] {
        parquet(&path, codec, &[row(vec![b'x'; 100 << 20])]);
        let (outcome, grown) = load("preference", &path);
        assert!(
            outcome.contains("a.parquet") && outcome.contains("swells more than any text does"),
            "{outcome}"
        );
        assert!(grown < MOST, "{codec:?} took {grown} bytes");
    }
    // A gzip page that lies about what it unpacks to: the first size in its header is made small.
    parquet(&path, Codec::GZIP(GzipLevel::default()), &[row(vec![b'x'; 100 << 20])]);
    let mut bytes = fs::read(&path).unwrap();
    let claim = varint((100 << 20) + 4);
    let at = bytes.windows(claim.len()).position(|it| it == claim).expect("the header claims its size");
    let mut lie = varint(1000);
    while lie.len() < claim.len() {
        *lie.last_mut().unwrap() |= 0x80;
        lie.push(0);
    }
    bytes[at..at + lie.len()].copy_from_slice(&lie);
    fs::write(&path, bytes).unwrap();
    let (outcome, grown) = load("preference", &path);
    assert!(outcome.contains("unpacks to more than its header says"), "{outcome}");
    assert!(grown < MOST, "took {grown} bytes");
}

/// A positive number as Thrift's compact form writes it.
fn varint(number: u64) -> Vec<u8> {
    let mut rest = number * 2;
    let mut bytes = vec![];
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

#[test]
fn damaged_parquet_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    parquet(&path, Codec::SNAPPY, &[row(b" 4".to_vec()), row(b" four".to_vec())]);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for bytes in [[&whole[..at], &[whole[at] ^ 0x41], &whole[at + 1..]].concat(), whole[..at].to_vec()] {
            fs::write(&path, bytes).unwrap();
            if let Err(error) = Dataset::load(&path, &ReadOptions::default()) {
                assert!(error.to_string().contains("a.parquet"), "byte {at}: {error}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_no_datasets() {
    for path in ["/dev/zero", "/dev/stdin"] {
        let error = Dataset::load(Path::new(path), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("not a regular file") || error.contains("is empty"), "{error}");
    }
}

/// The seed of the Parquet target in `fuzz/` is what this suite writes.
#[test]
fn the_seed_of_the_parquet_target_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fuzz/pairs.parquet");
    if std::env::var_os("RL_WRITE_SEEDS").is_some() {
        parquet(&path, Codec::SNAPPY, &[row(b" 4".to_vec()), row(b" four".to_vec())]);
    }
    assert_eq!(Dataset::load(&path, &ReadOptions::default()).unwrap().pairs.len(), 2);
}
