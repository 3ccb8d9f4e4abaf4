//! Lists grow and shrink as `Vec`s do wherever they are, and an access next to a guarded one is a fault.

#![allow(unsafe_code)]

use std::process::Command;

use reconverge_guarded::{Guarded, Placement};

const PLACEMENTS: [Placement; 3] = [Placement::Heap, Placement::AtEnd, Placement::AtStart];

#[test]
fn a_list_does_what_a_vec_does_in_every_placement() {
    for placement in PLACEMENTS {
        let mut list = Guarded::<u32>::new(0, placement);
        let mut vec: Vec<u32> = Vec::new();
        let mut state = 1u32;
        for step in 0..300 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let len = (state >> 16) as usize % 3000;
            match step % 5 {
                0 => {
                    list.extend_from_slice(&vec![state; len % 7]);
                    vec.extend_from_slice(&vec![state; len % 7]);
                }
                1 => {
                    list.truncate(len);
                    vec.truncate(len);
                }
                2 => {
                    list.resize(len);
                    vec.resize(len, 0);
                }
                3 if step % 3 == 0 => {
                    list.reset(len);
                    vec = vec![0; len];
                }
                _ => list.iter_mut().chain(&mut vec).for_each(|word| *word = word.wrapping_add(step)),
            }
            assert_eq!(list[..], vec[..], "{placement:?}, step {step}");
            assert_eq!(list.clone(), list);
        }
    }
}

#[test]
fn heap_lists_start_at_a_multiple_of_64() {
    for len in [1, 7, 100, 10_000] {
        assert_eq!(Guarded::<u8>::new(len, Placement::Heap).as_ptr() as usize % 64, 0);
    }
}

#[test]
fn a_list_is_zero_in_memory_that_another_has_used() {
    for placement in PLACEMENTS {
        for len in [1, 62, 4096, 5000] {
            Guarded::<u8>::new(len, placement).fill(0xff);
            assert!(Guarded::<u8>::new(len, placement).iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
#[cfg(unix)]
fn more_lists_than_the_system_maps_are_lists_all_the_same() {
    let lists: Vec<_> = (0..30_000u32).map(|word| Guarded::copied(&[word], Placement::AtEnd)).collect();
    assert!((0..).zip(&lists).all(|(word, list)| list[..] == [word]));
    drop(lists);
    std::thread::spawn(|| Guarded::<u8>::new(70, Placement::AtStart)).join().expect("a thread");
}

/// Reads a byte next to a list of `len` bytes, if the environment of this process requests it.
#[test]
#[cfg(unix)]
fn a_read_next_to_a_guarded_list_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    const NAME: &str = "a_read_next_to_a_guarded_list_ends_the_process";
    if let Ok(request) = std::env::var("READ_NEXT_TO_A_LIST") {
        let [placement, len, distance] = request
            .split(' ')
            .map(|word| word.parse::<i64>().expect("a number"))
            .collect::<Vec<_>>()
            .try_into()
            .expect("three numbers");
        let list = Guarded::<u8>::new(len as usize, PLACEMENTS[placement as usize]);
        // SAFETY: none: within the list it is a read, elsewhere the process ends.
        let byte = unsafe { list.as_ptr().wrapping_offset(distance as isize).read_volatile() };
        std::process::exit(3 + i32::from(byte));
    }
    let read = |placement: usize, len: i64, distance: i64| {
        let exe = std::env::current_exe().expect("this test");
        let mut command = Command::new(exe);
        command.args(["--exact", NAME, "--nocapture"]);
        command.env("READ_NEXT_TO_A_LIST", format!("{placement} {len} {distance}"));
        command.output().expect("a process").status
    };
    for len in [1, 62, 4096, 16384] {
        for inside in [0, len - 1] {
            for placement in 0..3 {
                assert_eq!(read(placement, len, inside).code(), Some(3), "{placement} {len} {inside}");
            }
        }
        for (placement, outside) in [(1, len), (1, len + (128 << 10) - 1), (2, -1), (2, -(128 << 10))] {
            let signal = read(placement, len, outside).signal();
            assert!(
                matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS)),
                "{placement} {len} {outside}: {signal:?}"
            );
        }
    }
}
