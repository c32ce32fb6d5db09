//! The program. All of it is in the library beside, which a release build compiles while it still
//! compiles what the library uses.

fn main() -> std::process::ExitCode {
    pinwise::main()
}
