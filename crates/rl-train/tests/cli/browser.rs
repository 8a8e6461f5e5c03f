//! Headless Chromium, where there is one: what a page looks like, and what it complains of.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::text;

/// What the reader prefers.
#[derive(Clone, Copy)]
pub enum Theme {
    Light,
    Dark,
}

/// A browser on this machine.
pub struct Browser {
    program: PathBuf,
    profile: tempfile::TempDir,
}

impl Browser {
    /// The first that is installed; `None`, and says so, if there is none.
    pub fn find() -> Option<Self> {
        let places = std::env::var_os("PATH")?;
        let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
        let mut all = std::env::split_paths(&places).flat_map(|folder| names.map(|name| folder.join(name)));
        let found = all.find(|path| path.is_file());
        if found.is_none() {
            eprintln!("skipped: no chromium");
        }
        Some(Self { program: found?, profile: tempfile::tempdir().unwrap() })
    }

    fn run(&self, options: &[String], page: &Path) -> String {
        let mut command = Command::new(&self.program);
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
        ]);
        command.arg(format!("--user-data-dir={}", self.profile.path().display())).args(options);
        let output = command.arg(format!("file://{}", page.display())).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "{complaints:?}");
        text(&output.stdout)
    }

    /// The page in a window of that size.
    pub fn picture(&self, page: &Path, theme: Theme, (width, height): (u32, u32)) -> Picture {
        let file = self.profile.path().join("picture.png");
        let scheme = match theme {
            Theme::Dark => 0,
            Theme::Light => 1,
        };
        self.run(
            &[
                format!("--screenshot={}", file.display()),
                format!("--window-size={width},{height}"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
            ],
            page,
        );
        Picture::read(&fs::read(file).unwrap())
    }

    /// What a page around `page` measures in it once it has loaded, in a window of that width.
    fn measure(&self, page: &Path, width: u32, script: &str) -> String {
        let frame = self.profile.path().join("frame.html");
        let html = format!(
            "<body style=\"margin:0\"><iframe id=f style=\"border:0;width:{width}px;height:900px\"></iframe><pre id=o></pre><script>\
             const t0=performance.now();f.onload=()=>{{const d=f.contentDocument;d.body.offsetHeight;\
             o.textContent='measured '+({script})+' end'}};f.src='file://{}'</script>",
            page.display()
        );
        fs::write(&frame, html).unwrap();
        let dom = self.run(
            &[
                "--dump-dom".into(),
                "--allow-file-access-from-files".into(),
                "--virtual-time-budget=20000".into(),
            ],
            &frame,
        );
        // The script stands in the page too: what it measured is in the element before it.
        let measured = dom.split("<pre id=\"o\">measured ").nth(1);
        measured
            .and_then(|rest| rest.split(" end").next())
            .unwrap_or_else(|| panic!("nothing in {dom}"))
            .to_owned()
    }

    /// How wide the page's content is in a window of that width.
    pub fn width_of_content(&self, page: &Path, width: u32) -> u32 {
        self.measure(page, width, "d.documentElement.scrollWidth").parse().unwrap()
    }

    /// Milliseconds until the page has loaded and is laid out.
    pub fn load_time(&self, page: &Path) -> f64 {
        let started = std::time::Instant::now();
        self.run(&["--dump-dom".into()], page);
        // The browser's own start is in it: an upper bound.
        started.elapsed().as_secs_f64() * 1000.0
    }
}

/// A screenshot.
pub struct Picture {
    channels: usize,
    width: usize,
    bytes: Vec<u8>,
}

impl Picture {
    /// Decodes a PNG of eight bits per channel, as browsers write it.
    fn read(png: &[u8]) -> Self {
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (number(16), number(20));
        assert_eq!((png[24], png[28]), (8, 0), "eight bits, not interlaced");
        let channels = match png[25] {
            2 => 3,
            6 => 4,
            other => panic!("colour type {other}"),
        };
        let (mut packed, mut at) = (vec![], 8);
        while at < png.len() {
            let length = number(at);
            if &png[at + 4..at + 8] == b"IDAT" {
                packed.extend_from_slice(&png[at + 8..at + 8 + length]);
            }
            at += length + 12;
        }
        let mut raw = vec![];
        flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_end(&mut raw).unwrap();
        let stride = width * channels;
        let mut bytes = vec![0u8; stride * height];
        for y in 0..height {
            let (filter, line) = (raw[y * (stride + 1)], &raw[y * (stride + 1) + 1..(y + 1) * (stride + 1)]);
            for x in 0..stride {
                let left = if x >= channels { i32::from(bytes[y * stride + x - channels]) } else { 0 };
                let above = if y > 0 { i32::from(bytes[(y - 1) * stride + x]) } else { 0 };
                let corner = if y > 0 && x >= channels {
                    i32::from(bytes[(y - 1) * stride + x - channels])
                } else {
                    0
                };
                let guess = match filter {
                    0 => 0,
                    1 => left,
                    2 => above,
                    3 => (left + above) / 2,
                    4 => {
                        let p = left + above - corner;
                        let by = |of: i32| (p - of).abs();
                        if by(left) <= by(above) && by(left) <= by(corner) {
                            left
                        } else if by(above) <= by(corner) {
                            above
                        } else {
                            corner
                        }
                    }
                    other => panic!("filter {other}"),
                };
                bytes[y * stride + x] = line[x].wrapping_add(guess as u8);
            }
        }
        Self { channels, width, bytes }
    }

    fn lightness(&self) -> Vec<f64> {
        self.bytes
            .chunks_exact(self.channels)
            .map(|pixel| pixel[..3].iter().map(|&part| f64::from(part)).sum::<f64>() / 765.0)
            .collect()
    }

    /// The mean lightness, 0 black and 1 white.
    pub fn brightness(&self) -> f64 {
        let all = self.lightness();
        all.iter().sum::<f64>() / all.len() as f64
    }

    /// The share of pixels that differ from their right neighbour.
    pub fn busy(&self) -> f64 {
        let all = self.lightness();
        let rows = all.chunks_exact(self.width);
        let differing =
            rows.flat_map(|row| row.windows(2)).filter(|pair| (pair[0] - pair[1]).abs() > 0.05).count();
        differing as f64 / all.len() as f64
    }
}
