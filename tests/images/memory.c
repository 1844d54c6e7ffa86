/* What programs do with memory, as functions for tests/images/test_memory.py: each returns 0 or what went wrong. The calls go
   through the C library's symbols, as those of allocators do. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, BLOCKS = 4000 };

static unsigned char *area;          /* anonymous memory, written before the freeze */
static unsigned char *hidden;        /* the same, without any permission */
static void *blocks[BLOCKS];
static uint32_t state = 1;

static uint32_t any(void) { return state = state * 1664525u + 1013904223u; }

static unsigned char *map(size_t size) {
  return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int is_zero(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i]) return 0;
  return 1;
}

static int is_ours(int first, int last) {
  for (int page = first; page < last; page++)
    for (int i = 0; i < PAGE; i++)
      if (area[page * PAGE + i] != (unsigned char)(page + 1)) return 0;
  return 1;
}

/* Before the freeze: memory of all kinds, full of bytes that are not zero, much of it freed. */
void before(void) {
  area = map(PAGES * PAGE);
  for (int page = 0; page < PAGES; page++) memset(area + page * PAGE, page + 1, PAGE);
  hidden = map(4 * PAGE);
  memset(hidden, 0x5a, 4 * PAGE);
  mprotect(hidden, 4 * PAGE, PROT_NONE);
  for (int i = 0; i < BLOCKS; i++) {
    size_t size = any() % 50 ? any() % 3000 : any() % 300000;
    blocks[i] = malloc(size);
    memset(blocks[i], 0xa5, size);
  }
  for (int i = 0; i < BLOCKS; i++)
    if (any() % 3) {
      free(blocks[i]);
      blocks[i] = NULL;
    }
}

int kept(void) { return !is_ours(0, PAGES); }

/* Callocs that hand out bytes which are not zero. */
int dirty_callocs(void) {
  int dirty = 0;
  for (int round = 0; round < 20000; round++) {
    int i = any() % BLOCKS;
    free(blocks[i]);
    size_t size = any() % 200 ? any() % 3000 : any() % 1000000;
    blocks[i] = calloc(1, size);
    dirty += !is_zero(blocks[i], size);
    memset(blocks[i], 0xa5, size);
    if (round % 5000 == 0) malloc_trim(0);
  }
  return dirty;
}

int huge_calloc(size_t size) {
  unsigned char *bytes = calloc(1, size);
  if (!bytes || !is_zero(bytes, size)) return 1;
  memset(bytes, 1, size);
  bytes = realloc(bytes, size * 2);
  if (!bytes || bytes[size - 1] != 1) return 2;
  free(bytes);
  return 0;
}

int drop(void) {
  if (madvise(area + 8 * PAGE, 8 * PAGE, MADV_DONTNEED)) return 1;
  if (!is_zero(area + 8 * PAGE, 8 * PAGE)) return 2;
  if (!is_ours(0, 8) || !is_ours(16, PAGES)) return 3;
  memset(area + 8 * PAGE, 7, PAGE);
  if (madvise(area + 8 * PAGE, PAGE, MADV_DONTNEED)) return 4;
  return is_zero(area + 8 * PAGE, PAGE) ? 0 : 5;
}

int posix_drop(void) {
  /* glibc's posix_madvise ignores POSIX_MADV_DONTNEED; what matters is that nothing is lost. */
  if (posix_madvise(area + 20 * PAGE, PAGE, POSIX_MADV_DONTNEED)) return 1;
  return !is_ours(20, 21);
}

int give_up(void) {
  if (madvise(area + 24 * PAGE, 8 * PAGE, MADV_FREE)) return 1;
  for (int page = 24; page < 32; page++) {
    unsigned char first = area[page * PAGE];
    if (first != 0 && first != page + 1) return 2;
    memset(area + page * PAGE, page + 1, PAGE);
  }
  return !is_ours(16, PAGES);
}

int wipe_on_fork(void) {
  if (madvise(area + 32 * PAGE, 4 * PAGE, MADV_WIPEONFORK)) return 1;
  if (!is_ours(16, PAGES)) return 2;
  pid_t child = fork();
  if (child == 0) _exit(is_zero(area + 32 * PAGE, 4 * PAGE) && is_ours(36, PAGES) ? 0 : 3);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

int grow(void) {
  unsigned char *moved = mremap(area + 40 * PAGE, 4 * PAGE, 200 * PAGE, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) return 1;
  for (int page = 0; page < 4; page++)
    if (moved[page * PAGE] != 41 + page) return 2;
  if (!is_zero(moved + 4 * PAGE, 196 * PAGE)) return 3;
  memset(moved, 9, 200 * PAGE);
  moved = mremap(moved, 200 * PAGE, 100 * PAGE, 0);
  return moved == MAP_FAILED || munmap(moved, 100 * PAGE);
}

int unhide(void) {
  if (mprotect(hidden, 4 * PAGE, PROT_READ | PROT_WRITE)) return 1;
  for (int i = 0; i < 4 * PAGE; i++)
    if (hidden[i] != 0x5a) return 2;
  if (mprotect(hidden, 4 * PAGE, PROT_NONE)) return 3;
  if (madvise(hidden, 2 * PAGE, MADV_DONTNEED)) return 4;
  if (mprotect(hidden, 4 * PAGE, PROT_READ)) return 5;
  return is_zero(hidden, 2 * PAGE) && hidden[2 * PAGE] == 0x5a ? 0 : 6;
}

int move_the_break(void) {
  unsigned char *end = sbrk(0);
  if (sbrk(1 << 20) != end) return 1;
  if (!is_zero(end, 1 << 20)) return 2;
  memset(end, 3, 1 << 20);
  if (sbrk(-(1 << 20)) == (void *)-1 || sbrk(0) != end) return 3;
  if (sbrk(1 << 20) != end || !is_zero(end, 1 << 20)) return 4;
  return sbrk(-(1 << 20)) == (void *)-1;
}

/* Uses about this much stack. */
int deep(size_t kilobytes) {
  volatile char room[1024];
  room[0] = (char)kilobytes;
  return kilobytes ? deep(kilobytes - 1) + (room[0] != (char)kilobytes) : 0;
}

/* Counts its runs in memory that is not of the process itself when a thaw shares it. */
int arenas(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks == 0;
}
