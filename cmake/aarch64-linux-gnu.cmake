# Builds on Debian for 64-bit Arm, and runs what it built with qemu's user mode (package qemu-user).
# QEMU_CPU chooses the CPU that qemu plays: max (all it knows), cortex-a72 (Armv8.0), ...
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
