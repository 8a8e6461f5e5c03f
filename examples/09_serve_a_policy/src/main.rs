//! Acts with a trained policy: a line of numbers in, the number of an action out. No training code is linked: this package
//! knows `rl-models` and `rl-core`, and `cargo xtask tidy` keeps it so.
//!
//! ```console
//! $ cargo xtask train ppo-cart-pole --out runs/pole
//! $ echo '0.01 -0.02 0.03 0.04' | cargo xtask example 09 runs/pole 4 2
//! ```

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use burn::tensor::{Device, Tensor, TensorData};
use rand::SeedableRng;
use rl_core::dist::Distribution;
use rl_models::flat_params::{count, unflatten};
use rl_models::{CategoricalHead, Kernels, MlpConfig, MlpPolicy, Policy};
use safetensors::SafeTensors;

type Failure = Box<dyn Error>;

/// The newest checkpoint of a run: their names are numbers of updates, padded.
fn newest(run: &Path) -> Result<PathBuf, Failure> {
    let folder = run.join("checkpoint");
    let files =
        fs::read_dir(&folder).map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let whole = files.filter(|path| path.extension().is_some_and(|ending| ending == "safetensors"));
    Ok(whole.max().ok_or_else(|| format!("`{}` holds no checkpoint", folder.display()))?)
}

/// The policy of a run: its shape from `config.toml`, its numbers from the newest checkpoint.
fn load(run: &Path, observations: usize, actions: usize) -> Result<MlpPolicy<CategoricalHead>, Failure> {
    let config: toml::Table = fs::read_to_string(run.join("config.toml"))?.parse()?;
    let model = config.get("model").ok_or("`config.toml` has no [model]")?;
    let setting = |key: &str| model.get(key).cloned().ok_or(format!("`config.toml` has no `model.{key}`"));
    if setting("layout")?.as_str() != Some("separate") {
        return Err("`model.layout` must be \"separate\": a shared trunk is another module".into());
    }
    if config
        .get("normalize")
        .and_then(|it| it.get("obs_clip"))
        .is_some_and(|clip| clip.as_str() != Some("off"))
    {
        return Err("`normalize.obs_clip` is on: this example does not read the normaliser".into());
    }
    let shape = MlpConfig {
        hidden: setting("hidden")?.try_into()?,
        activation: setting("activation")?.try_into()?,
        kernels: Kernels::Host,
        ..MlpConfig::default()
    };
    // A network of that shape with any numbers, then the run's numbers: the policy's come first, the critic's after them.
    let (device, mut rng) = (Device::flex(), rand_chacha::ChaCha8Rng::seed_from_u64(0));
    let policy = MlpPolicy::new(&shape, observations, CategoricalHead::new(actions), &mut rng, &device);
    let (file, n) = (fs::read(newest(run)?)?, count(&policy));
    let checkpoint = SafeTensors::deserialize(&file)?;
    let bytes = checkpoint.tensor("model")?.data();
    if bytes.len() < 4 * n {
        let has = bytes.len() / 4;
        return Err(
            format!("the run has {has} parameters, a policy of this shape has {n}: wrong sizes?").into()
        );
    }
    let numbers: Vec<f32> =
        bytes[..4 * n].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Ok(unflatten(policy, &Tensor::from_data(TensorData::new(numbers, [n]), &device)))
}

/// Answers each line until there is none.
fn serve() -> Result<(), Failure> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [run, observations, actions] = words.as_slice() else {
        return Err("usage: rl-serve RUN OBSERVATIONS ACTIONS < observations".into());
    };
    let observations: usize = observations.parse()?;
    let policy = load(Path::new(run), observations, actions.parse()?)?;
    let mut out = stdout();
    for (i, line) in stdin().lock().lines().enumerate() {
        let line = line?;
        let numbers: Result<Vec<f32>, _> = line.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|error| format!("line {}: {error}", i + 1))?;
        if numbers.len() != observations {
            return Err(format!("line {}: {} numbers instead of {observations}", i + 1, numbers.len()).into());
        }
        let seen = Tensor::from_data(TensorData::new(numbers, [1, observations]), &Device::flex());
        let action: Vec<i64> = policy.policy(&seen).mode().into_data().try_into_vec_as()?;
        writeln!(out, "{}", action[0])?;
        out.flush()?;
    }
    Ok(())
}

fn main() {
    if let Err(error) = serve() {
        eprintln!("error: {error}");
        process::exit(1);
    }
}
