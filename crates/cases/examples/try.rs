use reconverge_cases::*;
fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let cases = read(&path, &bytes, &NoFolder, None).unwrap();
        let mut summary = Summary::default();
        let t = std::time::Instant::now();
        for case in &cases {
            let v = case.judge(&Settings::default());
            summary.add(case, v);
        }
        println!(
            "{path}: {} passed {} failed {} unsup {} findings {:?}",
            summary.passed,
            summary.failed,
            summary.unsupported,
            summary.findings.len(),
            t.elapsed()
        );
        for f in summary.failures.iter().take(12) {
            println!("  F {} {}", f.name, f.why);
        }
        for f in summary.findings.iter().take(12) {
            println!("  S {} {}", f.name, f.why);
        }
    }
}
