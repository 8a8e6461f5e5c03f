//! From a device's name to a burn device: the only file that names a backend.

use anyhow::Result;
use burn::tensor::{Device, FloatDType};
use rl_algos::Team;
use rl_models::Kernels;

use crate::config::error::{ConfigError, hint, listed};

/// Every device there is: name (which is also the cargo feature), whether this build has it, what it is.
pub const DEVICES: [(&str, bool, &str); 4] = [
    ("flex", cfg!(feature = "flex"), "the CPU, burn's own kernels"),
    ("ndarray", cfg!(feature = "ndarray"), "the CPU, through the ndarray crate"),
    ("wgpu", cfg!(feature = "wgpu"), "any GPU, through WebGPU"),
    ("cuda", cfg!(feature = "cuda"), "NVIDIA GPUs, through CUDA"),
];

/// Where a run's tensors live, and which code suits it.
#[derive(Debug, Clone)]
pub struct ChosenDevice {
    /// The device.
    pub device: Device,
    /// How networks run on it.
    pub kernels: Kernels,
    /// The replicas that gradients are shared with.
    pub team: Team,
}

impl ChosenDevice {
    /// The same device, in a team.
    pub fn in_team(mut self, team: Team) -> Self {
        self.team = team;
        self
    }
}

/// Checks a device's name without starting it.
///
/// # Errors
/// If there is no such device, or not in this build.
pub fn check(name: &str) -> Result<(), ConfigError> {
    let names = DEVICES.map(|(known, _, _)| known);
    match DEVICES.iter().find(|(known, _, _)| *known == name) {
        None => {
            let (hint, known) = (hint(name, &names), listed(&names));
            Err(ConfigError::UnknownDevice { name: name.to_owned(), hint, known })
        }
        Some((_, false, _)) => {
            let built: Vec<&str> =
                DEVICES.iter().filter(|(_, built, _)| *built).map(|(name, _, _)| *name).collect();
            Err(ConfigError::DeviceNotBuilt { name: name.to_owned(), built: listed(&built) })
        }
        Some((_, true, _)) => Ok(()),
    }
}

/// The device called `name`, started.
///
/// # Errors
/// [`check`]'s, and if the machine has no such device.
pub fn choose(name: &str) -> Result<ChosenDevice> {
    check(name)?;
    let device = match name {
        #[cfg(feature = "flex")]
        "flex" => Device::flex(),
        // Deprecated upstream in favour of flex; kept as a second opinion (docs/adr).
        #[cfg(feature = "ndarray")]
        #[allow(deprecated)]
        "ndarray" => Device::ndarray(),
        #[cfg(feature = "wgpu")]
        "wgpu" => wgpu()?,
        #[cfg(feature = "cuda")]
        "cuda" => cuda()?,
        _ => unreachable!("check() lets only built devices pass"),
    };
    let on_host = matches!(name, "flex" | "ndarray");
    let single = device.settings().float_dtype == FloatDType::F32;
    let kernels = if on_host && single { Kernels::Host } else { Kernels::Portable };
    Ok(ChosenDevice { device, kernels, team: Team::default() })
}

/// `Device::wgpu` would start at the first tensor, and panic there; this starts now.
#[cfg(feature = "wgpu")]
fn wgpu() -> Result<Device> {
    let kind = burn::tensor::DeviceKind::DefaultDevice;
    Device::wgpu_options().device_kind(kind).init().map_err(|error| {
        anyhow::anyhow!(
            "device `wgpu` found no adapter ({error}); install a Vulkan driver (Debian: `apt-get install \
             mesa-vulkan-drivers libvulkan1`, which also works without a GPU), or use `--device flex`"
        )
    })
}

/// CUDA's libraries are loaded at the first tensor, and their absence is a panic: try one here.
#[cfg(feature = "cuda")]
fn cuda() -> Result<Device> {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let tried = std::panic::catch_unwind(|| {
        let device = Device::cuda(0);
        let one = burn::tensor::Tensor::<1>::ones([1], &device).into_scalar::<f32>();
        (one == 1.0).then_some(device)
    });
    std::panic::set_hook(quiet);
    tried.ok().flatten().ok_or_else(|| {
        anyhow::anyhow!(
            "device `cuda` does not answer; install the NVIDIA driver and the CUDA toolkit (`nvidia-smi` must list \
             a GPU), or use `--device flex`"
        )
    })
}
