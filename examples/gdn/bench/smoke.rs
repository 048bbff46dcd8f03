//! Calls the library through the generated Rust bridge and compares with the recurrence in f64 on the CPU.
//!     smoke_rust TOKENS NK NV SLOTS

#[path = "gdn.rs"]
mod gdn;

use std::ffi::{c_int, c_void};
use std::process::ExitCode;

const DIM: usize = 128;

// SAFETY: the declarations of the CUDA runtime's header, spelled in Rust; cudaError_t and cudaMemcpyKind are ints.
unsafe extern "C" {
    fn cudaMalloc(pointer: *mut *mut c_void, bytes: usize) -> c_int;
    fn cudaMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> c_int;
    fn cudaStreamCreate(stream: *mut *mut c_void) -> c_int;
    fn cudaStreamSynchronize(stream: *mut c_void) -> c_int;
}
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;

fn check(error: c_int) {
    assert_eq!(error, 0, "CUDA error");
}

fn on_device<T>(host: &[T]) -> *mut c_void {
    let mut pointer = std::ptr::null_mut();
    // SAFETY: the allocation has the size that is copied into it.
    unsafe {
        check(cudaMalloc(&raw mut pointer, size_of_val(host)));
        check(cudaMemcpy(pointer, host.as_ptr().cast(), size_of_val(host), TO_DEVICE));
    }
    pointer
}

fn to_host<T>(device: *const c_void, host: &mut [T]) {
    // SAFETY: `device` was allocated for as many elements as `host` has.
    unsafe { check(cudaMemcpy(host.as_mut_ptr().cast(), device, size_of_val(host), TO_HOST)) }
}

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / f64::from(1 << 24)
    }
}

fn from_bf16(half: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(half) << 16))
}

struct Problem {
    tokens: usize,
    nk: usize,
    nv: usize,
    conv_dim: usize,
    gb_stride: usize,
    scale: f32,
    qkv: Vec<u16>,
    gate_beta: Vec<f32>,
    state: Vec<f32>,
}

impl Problem {
    fn new(tokens: usize, nk: usize, nv: usize) -> Self {
        let (conv_dim, gb_stride, mut random) = ((2 * nk + nv) * DIM + 8, 2 * nv + 1, Random(1));
        let qkv = (0..tokens * conv_dim).map(|i| {
            let size = if i % conv_dim < 2 * nk * DIM { 0.3 } else { 2.0 };
            ((((random.uniform() - 0.5) * size) as f32).to_bits() >> 16) as u16
        });
        let qkv = qkv.collect();
        let gates = (0..tokens * gb_stride).map(|i| {
            let u = random.uniform();
            (if i % gb_stride < nv { 1.0 - 0.05 * u } else { u }) as f32
        });
        let gate_beta = gates.collect();
        let state = (0..nv * DIM * DIM).map(|_| (0.2 * (random.uniform() - 0.5)) as f32).collect();
        Self { tokens, nk, nv, conv_dim, gb_stride, scale: 0.088_388_3, qkv, gate_beta, state }
    }

    /// Outputs and final state.
    fn reference(&self) -> (Vec<f64>, Vec<f64>) {
        let mut state: Vec<f64> = self.state.iter().map(|&x| f64::from(x)).collect();
        let mut output = vec![0.0; self.tokens * self.nv * DIM];
        for (row_index, result) in output.chunks_exact_mut(DIM).enumerate() {
            let (t, head) = (row_index / self.nv, row_index % self.nv);
            let row = &self.qkv[t * self.conv_dim..];
            let key_head = head / (self.nv / self.nk) * DIM;
            let (q, k) = (&row[key_head..], &row[self.nk * DIM + key_head..]);
            let v = &row[(2 * self.nk + head) * DIM..];
            let alpha = f64::from(self.gate_beta[t * self.gb_stride + head]);
            let beta = f64::from(self.gate_beta[t * self.gb_stride + self.nv + head]);
            let state = &mut state[head * DIM * DIM..][..DIM * DIM];
            let mut known = [0.0; DIM];
            for (i, line) in state.chunks_exact_mut(DIM).enumerate() {
                for (s, known) in line.iter_mut().zip(&mut known) {
                    *s *= alpha;
                    *known += *s * from_bf16(k[i]);
                }
            }
            for (i, line) in state.chunks_exact_mut(DIM).enumerate() {
                for (j, s) in line.iter_mut().enumerate() {
                    *s += from_bf16(k[i]) * beta * (from_bf16(v[j]) - known[j]);
                    result[j] += *s * from_bf16(q[i]) * f64::from(self.scale);
                }
            }
        }
        (output, state)
    }
}

fn relative_rms(value: impl Iterator<Item = f64>, expected: &[f64]) -> f64 {
    let difference: f64 = value.zip(expected).map(|(a, b)| (a - b) * (a - b)).sum();
    (difference / expected.iter().map(|x| x * x).sum::<f64>()).sqrt()
}

fn run(problem: &Problem, slots: i32) -> Result<(Vec<u16>, Vec<f32>), gdn::Error> {
    let mut output = vec![0u16; problem.tokens * problem.nv * DIM];
    let mut state = vec![0f32; problem.state.len()];
    let (qkv, gate_beta) = (on_device(&problem.qkv), on_device(&problem.gate_beta));
    let (device_output, device_state) = (on_device(&output), on_device(&problem.state));
    let mut stream = std::ptr::null_mut();
    let size = |value: usize| i32::try_from(value).expect("sizes are small here");
    // SAFETY: the buffers have the sizes that the shape arguments say and live to the end of the process.
    unsafe {
        check(cudaStreamCreate(&raw mut stream));
        gdn::limit_slots(slots)?;
        gdn::prefill(
            qkv,
            gate_beta,
            device_output,
            device_state,
            problem.scale,
            size(problem.tokens),
            size(problem.nk),
            size(problem.nv),
            size(DIM),
            size(DIM),
            size(problem.conv_dim),
            size(problem.gb_stride),
            1,
            stream,
        )?;
        check(cudaStreamSynchronize(stream));
    }
    to_host(device_output, &mut output);
    to_host(device_state, &mut state);
    Ok((output, state))
}

fn main() -> ExitCode {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    if let Some(reason) = gdn::unavailable_reason() {
        eprintln!("{reason}");
        return ExitCode::from(2);
    }
    let problem = Problem::new(arguments[0], arguments[1], arguments[2]);
    let (output, state) = match run(&problem, i32::try_from(arguments[3]).expect("a small number")) {
        Ok(found) => found,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let (expected, expected_state) = problem.reference();
    let output_error = relative_rms(output.into_iter().map(from_bf16), &expected);
    let state_error = relative_rms(state.into_iter().map(f64::from), &expected_state);
    println!("relative RMS: output {output_error:.2e}, state {state_error:.2e}");
    ExitCode::from(u8::from(output_error.max(state_error) >= 1e-2 || output_error.is_nan()))
}
