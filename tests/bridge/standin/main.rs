//! The Rust side of test_bridges.py: one scenario a process.

mod standin;

use std::ffi::c_void;
use standin::{standin_job, standin_range, Error};

fn report(result: Result<(), Error>) {
    match result {
        Ok(()) => println!("ok"),
        Err(error) => println!("{}: {error}", match error {
            Error::Unavailable(_) => "Unavailable",
            Error::Precondition { .. } => "PreconditionError",
            Error::Status { .. } => "StatusError",
        }),
    }
}

fn sum(argument: impl Fn(usize) -> String) {
    let data = [1.0f32, 2.0, 3.0, 4.0];
    let job = standin_job {
        rows: 2,
        factor: 0.5,
        data: data.as_ptr(),
        tag: [1, 2, 3],
        range: standin_range { low: 0.0, high: 100.0 },
    };
    let mut results = [0f32; 2];
    let job_pointer = if argument(0) == "null" { std::ptr::null() } else { &raw const job };
    let offset = argument(1).parse::<usize>().unwrap();
    let result = results.as_mut_ptr().wrapping_byte_add(offset);
    let scale = argument(3).parse::<f32>().unwrap();
    // SAFETY: job and results live to the end of this function and have the sizes that the header asks for.
    let outcome = unsafe {
        standin::sum(job_pointer, result, argument(2).parse().unwrap(), scale, argument(4) == "1", std::ptr::null_mut::<c_void>())
    };
    report(outcome);
    println!("{}", results[0]);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments[index + 1].clone();
    match arguments[0].as_str() {
        "available" => {
            for _ in 0..3 {
                println!("{} {}", standin::available(), standin::unavailable_reason().unwrap_or("-"));
            }
        }
        "sum" => sum(argument),
        // SAFETY: these take no pointer.
        "fail" => report(unsafe { standin::fail(argument(0).parse().unwrap()) }),
        "threads" => {
            let threads: Vec<_> = (0..16).map(|_| std::thread::spawn(standin::available)).collect();
            let usable = threads.into_iter().map(|t| t.join().unwrap()).filter(|ok| *ok).count();
            // SAFETY: takes no pointer.
            println!("{usable} {}", unsafe { standin::loads() }.unwrap());
        }
        // SAFETY: these take no pointer.
        "reset" => unsafe {
            standin::reset(argument(0).parse().unwrap()).unwrap();
            println!("{}", standin::loads().unwrap());
        },
        other => panic!("no scenario {other}"),
    }
}
