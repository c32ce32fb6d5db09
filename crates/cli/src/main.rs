//! The program. All its code is in this package's library. So a release build can compile it at
//! the same time as the crates it uses.

fn main() -> std::process::ExitCode {
    pinwise::main()
}
