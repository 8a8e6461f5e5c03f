//! TensorBoard event files, written and read without TensorBoard.
//!
//! A file is a row of records: length (u64), masked CRC-32C of the length, data, masked CRC-32C of the data, all little
//! endian (TFRecord). The data is an `Event` of protocol buffers, of which five fields suffice:
//!
//! ```text
//! Event   { 1 wall_time: double, 2 step: int64, 3 file_version: string, 5 summary: Summary }
//! Summary { 1 value: repeated Value }
//! Value   { 1 tag: string, 2 simple_value: float }
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The reflected polynomial of CRC-32C (Castagnoli 1993).
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-32C of `data`.   RFC 3720, appendix B.4
pub fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, &byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

/// The CRC as TFRecord stores it: rotated and shifted, so that a CRC of data with CRCs in it stays one.
pub fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// An event file that is being written.
pub struct EventFile<W: Write> {
    out: W,
}

impl EventFile<BufWriter<File>> {
    /// A new file in `folder`, beside those of earlier sittings; TensorBoard reads them as one.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn create(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let seconds = now() as u64;
        let names = (0..).map(|i| format!("events.out.tfevents.{seconds:010}.rl-train.{i}"));
        let path =
            names.map(|name| folder.join(name)).find(|path| !path.exists()).expect("some number is free");
        Self::new(BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }
}

impl<W: Write> EventFile<W> {
    /// Begins a file in `out`.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn new(out: W) -> io::Result<Self> {
        let mut file = Self { out };
        let mut event = wall_time(now());
        bytes(&mut event, 3, b"brain.Event:2");
        file.record(&event)?;
        Ok(file)
    }

    /// Adds the values of one step, at `wall_s` seconds since 1970.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write<'a>(
        &mut self,
        step: u64,
        wall_s: f64,
        values: impl Iterator<Item = (&'a str, f64)>,
    ) -> io::Result<()> {
        let mut event = wall_time(wall_s);
        event.push(2 << 3);
        varint(&mut event, step);
        let mut summary = vec![];
        for (tag, value) in values {
            let mut one = vec![];
            bytes(&mut one, 1, tag.as_bytes());
            one.push(2 << 3 | 5);
            one.extend_from_slice(&(value as f32).to_le_bytes());
            bytes(&mut summary, 1, &one);
        }
        bytes(&mut event, 5, &summary);
        self.record(&event)
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        self.out.write_all(&length)?;
        self.out.write_all(&masked(crc32c(&length)).to_le_bytes())?;
        self.out.write_all(data)?;
        self.out.write_all(&masked(crc32c(data)).to_le_bytes())?;
        // TensorBoard follows the file while it grows.
        self.out.flush()
    }
}

/// Seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

fn wall_time(seconds: f64) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend_from_slice(&seconds.to_le_bytes());
    event
}

/// A field of bytes: its number, its length, itself.
fn bytes(out: &mut Vec<u8>, field: u8, data: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, data.len() as u64);
    out.extend_from_slice(data);
}

/// Seven bits per byte, the lowest first.
fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // RFC 3720, appendix B.4, and the usual check string.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    fn read_varint(data: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = data[0];
            *data = &data[1..];
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    /// Fields of a message as `(number, bytes)`; a varint is its eight bytes.
    fn fields(mut data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut found = vec![];
        while !data.is_empty() {
            let key = read_varint(&mut data);
            let value = match key & 7 {
                0 => read_varint(&mut data).to_le_bytes().to_vec(),
                kind => {
                    let length = match kind {
                        1 => 8,
                        5 => 4,
                        2 => read_varint(&mut data) as usize,
                        other => panic!("wire type {other}"),
                    };
                    let (value, rest) = data.split_at(length);
                    data = rest;
                    value.to_vec()
                }
            };
            found.push((key >> 3, value));
        }
        found
    }

    fn records(mut file: &[u8]) -> Vec<Vec<u8>> {
        let mut found = vec![];
        while !file.is_empty() {
            let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
            let crc = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
            assert_eq!(crc(8), masked(crc32c(&file[..8])));
            let data = &file[12..12 + length];
            assert_eq!(crc(12 + length), masked(crc32c(data)));
            found.push(data.to_vec());
            file = &file[16 + length..];
        }
        found
    }

    #[test]
    fn what_is_written_is_read_back_field_by_field() {
        let mut file = EventFile::new(vec![]).unwrap();
        file.write(300, 12.5, [("losses/kl", 0.25), ("charts/é", f64::NAN)].into_iter()).unwrap();
        let records = records(&file.out);
        assert_eq!(fields(&records[0])[1], (3, b"brain.Event:2".to_vec()));
        let event = fields(&records[1]);
        assert_eq!(event[0], (1, 12.5f64.to_le_bytes().to_vec()));
        assert_eq!(event[1], (2, 300u64.to_le_bytes().to_vec()));
        let values: Vec<_> = fields(&event[2].1).into_iter().map(|(_, value)| fields(&value)).collect();
        assert_eq!(values[0], [(1, b"losses/kl".to_vec()), (2, 0.25f32.to_le_bytes().to_vec())]);
        assert_eq!(values[1][0].1, "charts/é".as_bytes());
        assert!(f32::from_le_bytes(values[1][1].1[..].try_into().unwrap()).is_nan());
    }
}
