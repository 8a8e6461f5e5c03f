//! The inputs of a case as tensors of one device and precision.

use std::ops::Deref;

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

use crate::compare::Precision;
use crate::vectors::{Inputs, Numbers};

/// A device and a precision to run a tensor formula in.
#[derive(Clone, Debug)]
pub struct Lab {
    /// How reports call the device.
    pub name: &'static str,
    /// The device.
    pub device: Device,
    /// The precision of its tensors.
    pub precision: Precision,
}

impl Lab {
    /// Every device under test, in every precision that it computes in.
    pub fn all() -> Vec<Self> {
        let labs = |(name, device): (&'static str, Device)| {
            let precise = device.supports_dtype(DType::F64);
            let precisions = [Some(Precision::Single), precise.then_some(Precision::Double)];
            precisions.into_iter().flatten().map(move |precision| Self {
                name,
                device: device.clone(),
                precision,
            })
        };
        rl_tests::devices().into_iter().flat_map(labs).collect()
    }

    fn dtype(&self) -> DType {
        match self.precision {
            Precision::Single => DType::F32,
            Precision::Double => DType::F64,
        }
    }
}

/// The inputs of a case in a [`Lab`]; everything [`Inputs`] can do, and tensors.
pub struct TensorInputs<'a> {
    /// The case's inputs.
    pub inputs: &'a Inputs,
    /// Where and how precisely.
    pub lab: &'a Lab,
}

impl Deref for TensorInputs<'_> {
    type Target = Inputs;

    fn deref(&self) -> &Inputs {
        self.inputs
    }
}

impl TensorInputs<'_> {
    /// A constant, in the shape of the file.
    pub fn tensor<const D: usize>(&self, key: &str) -> Tensor<D> {
        let Numbers { shape, values } = self.list(key);
        self.tensor_of(values, dims(key, &shape))
    }

    /// A constant with all numbers of the file in one row: `[B][T]` → `[B·T]`.
    pub fn flat(&self, key: &str) -> Tensor<1> {
        let values = self.list(key).values;
        let n = values.len();
        self.tensor_of(values, [n])
    }

    fn tensor_of<const D: usize>(&self, values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        let target = (&self.lab.device, self.lab.dtype());
        match self.lab.precision {
            Precision::Double => Tensor::from_data(TensorData::new(values, shape), target),
            Precision::Single => {
                let rounded: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
                Tensor::from_data(TensorData::new(rounded, shape), target)
            }
        }
    }

    /// A variable to differentiate in, in the shape of the file.
    pub fn variable<const D: usize>(&self, key: &str) -> Tensor<D> {
        self.tensor(key).autodiff().require_grad()
    }

    /// Whole numbers.
    pub fn indices<const D: usize>(&self, key: &str) -> Tensor<D, Int> {
        let Numbers { shape, values } = self.list(key);
        let values: Vec<i64> = values.into_iter().map(|x| x as i64).collect();
        Tensor::from_data(TensorData::new(values, dims::<D>(key, &shape)), &self.lab.device)
    }

    /// A mask; all true in the shape of `like` where the file has null.
    pub fn mask<const D: usize>(&self, key: &str, like: &str) -> Tensor<D, Bool> {
        let Numbers { shape, values } = if self.has(key) { self.list(key) } else { self.list(like) };
        let flags: Vec<bool> = values.into_iter().map(|x| !self.has(key) || x != 0.0).collect();
        Tensor::from_data(TensorData::new(flags, dims::<D>(key, &shape)), &self.lab.device)
    }
}

fn dims<const D: usize>(key: &str, shape: &[usize]) -> [usize; D] {
    shape.try_into().unwrap_or_else(|_| panic!("input `{key}` has {} axes, not {D}", shape.len()))
}

/// The gradients of a scalar in some variables, by autodiff.
pub fn gradients<const D: usize, const K: usize>(
    of: &Tensor<1>,
    variables: [&Tensor<D>; K],
) -> [Tensor<D>; K] {
    let tape = of.clone().backward();
    variables.map(|variable| variable.grad(&tape).expect("the result depends on the variable"))
}

/// The gradient of a scalar in one variable, by autodiff.
pub fn gradient<const D: usize>(of: &Tensor<1>, variable: &Tensor<D>) -> Tensor<D> {
    let [gradient] = gradients(of, [variable]);
    gradient
}
