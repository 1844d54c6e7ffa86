/* What a C library adds to that: linked statically and dynamically. */
int main(void) { return 0; }
