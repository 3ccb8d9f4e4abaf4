//! The node of `reconverge drm` with programs that do not behave like a driver.
//!
//! The programs are the C files in `tests/node`. The tests preload the library without the command, so that they do
//! not need a driver. Without a C compiler, they print a message and pass.

#![cfg(target_os = "linux")]

mod driver;

use std::path::Path;
use std::process::{Command, Stdio};

use driver::LIBRARY;

/// Runs a program of `tests/node` on a chip, in a new folder. The program prints the first condition that does not hold.
#[track_caller]
fn holds(program: &str, chip: &str, arguments: &[&str]) {
    let name = format!("node-{program}-{}", arguments.concat());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node").join(program).with_extension("c");
    let compiled =
        Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(folder.join(program)).arg(source).status();
    let Ok(compiled) = compiled else {
        println!("skipped: cc is not installed: apt-get install gcc libc6-dev");
        return;
    };
    assert!(compiled.success(), "{program}.c");
    let mut command = Command::new(folder.join(program));
    command.args(arguments).current_dir(&folder).stdin(Stdio::null());
    command.env("LD_PRELOAD", &*LIBRARY).env("RECONVERGE_DRM_CHIP", chip);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {said}", output.status);
}

/// The program closes descriptors one by one, in one call, by overwriting them, and with system calls.
#[test]
fn a_program_that_closes_descriptors_it_does_not_know_keeps_its_files_and_its_buffers() {
    for how in ["close", "close_range", "closefrom", "dup2", "syscall"] {
        holds("descriptors", "rv770", &[how]);
    }
}

#[test]
fn buffers_end_with_the_last_descriptor_of_their_open_file() {
    holds("lifetimes", "rv770", &["buffers_end_with_the_last_descriptor"]);
}

#[test]
fn a_program_that_closes_everything_opens_the_node_again() {
    holds("lifetimes", "rv770", &["everything_is_closed_and_the_node_is_opened_again"]);
}

#[test]
fn an_open_file_lasts_while_its_descriptor_is_sent() {
    holds("lifetimes", "rv770", &["an_open_file_lasts_while_it_is_sent"]);
}

#[test]
fn a_child_process_closes_no_open_file_of_its_parent() {
    holds("lifetimes", "rv770", &["a_child_keeps_an_open_file_and_closes_none_of_its_parent"]);
}

#[test]
fn a_mapping_keeps_its_pages_after_its_handle_is_closed() {
    holds("lifetimes", "rv770", &["a_mapping_keeps_its_pages"]);
}

#[test]
fn two_processes_share_a_tiled_buffer() {
    holds("processes", "rv770", &["two_processes_share_a_tiled_buffer"]);
}

#[test]
fn an_open_file_is_used_by_another_process() {
    holds("processes", "rv770", &["an_open_file_is_used_by_another_process"]);
}

/// 100 clients are killed at random times.
#[test]
fn killed_clients_leave_nothing() {
    holds("processes", "rv770", &["killed_clients_leave_nothing"]);
}

#[test]
fn the_node_has_paths_and_a_folder() {
    holds("processes", "gt215", &["the_node_has_paths"]);
}

#[test]
fn a_framebuffer_keeps_its_buffer_and_ends_with_its_open_file() {
    holds("lifetimes", "rv770", &["a_framebuffer_keeps_its_buffer"]);
}

#[test]
fn a_handle_of_one_open_file_means_nothing_to_another() {
    for chip in ["rv770", "rv515"] {
        holds("lifetimes", chip, &["a_handle_means_nothing_to_another_open_file"]);
    }
}

#[test]
fn lifetimes_and_addresses_are_checked_for_nouveau_too() {
    holds("lifetimes", "gt215", &["nouveau_has_the_same_lifetimes"]);
}

#[test]
fn addresses_that_a_program_cannot_use_are_efault_in_every_request() {
    holds("pointers", "rv770", &[]);
}

#[test]
fn addresses_are_checked_in_a_sandbox_that_refuses_the_system_calls_for_it() {
    holds("sandbox", "rv770", &[]);
}

#[test]
fn a_thread_is_cancelled_in_functions_that_the_library_defines() {
    holds("cancel", "rv770", &[]);
}

#[test]
fn functions_of_files_fail_on_the_node_and_events_are_read_from_it() {
    holds("operations", "rv770", &[]);
}

#[test]
fn devices_are_found_with_libudev() {
    holds("devices", "rv770", &["devices_are_found_with_libudev"]);
}

#[test]
fn input_devices_answer_as_the_kernel_does() {
    holds("devices", "gt215", &["input_devices_answer_as_the_kernel_does"]);
}

#[test]
fn events_of_a_window_are_read() {
    holds("devices", "rv515", &["events_of_a_window_are_read"]);
}

#[test]
fn searches_and_null_are_as_with_libudev() {
    holds("devices", "rv770", &["searches_and_null_are_as_with_libudev"]);
}

#[test]
fn events_of_a_window_are_read_and_written_whole() {
    holds("inputs", "rv770", &["events_are_read_whole"]);
    holds("inputs", "rv770", &["events_are_written_whole"]);
}

#[test]
fn a_file_with_o_async_sends_sigio() {
    holds("inputs", "rv770", &["a_file_with_o_async_sends_sigio"]);
}

#[test]
fn an_input_file_is_one_in_another_program() {
    holds("inputs", "rv770", &["a_file_is_one_after_exec"]);
}

#[test]
fn an_open_file_outlives_its_opener() {
    holds("processes", "rv770", &["an_open_file_outlives_its_opener"]);
}

#[test]
fn a_folder_is_listed_by_every_function() {
    holds("folders", "rv770", &["a_folder_is_listed_by_every_function"]);
}

#[test]
fn programs_list_the_folders_and_nothing_is_left() {
    holds("folders", "gt215", &["programs_list_the_folders_and_nothing_is_left"]);
}

#[test]
fn paths_are_resolved_opened_and_described() {
    holds("folders", "rv770", &["paths_are_resolved_opened_and_described"]);
}
