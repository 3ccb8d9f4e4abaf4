//! Files in memory, to and from which launch files are written and read.

use std::collections::BTreeMap;

use reconverge_gpu::launch_file::Store;
use reconverge_workbench::values::Files;

/// Files in memory, by name.
#[derive(Default)]
pub(crate) struct Shelf(pub(crate) BTreeMap<String, Vec<u8>>);

impl Store for Shelf {
    fn put(&mut self, kind: &str, ending: &str, bytes: Vec<u8>) -> Result<String, String> {
        let name = format!("{kind}-{}.{ending}", self.0.len());
        self.0.insert(name.clone(), bytes);
        Ok(name)
    }
}

impl Files for Shelf {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.get(name).cloned().ok_or_else(|| "no such file".to_owned())
    }
}
