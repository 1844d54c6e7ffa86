/* The least that a process can be: one system call, no libc. */
void _start(void) {
  __asm__ volatile("syscall" : : "a"(231L /* exit_group */), "D"(0L) : "rcx", "r11", "memory");
  __builtin_unreachable();
}
