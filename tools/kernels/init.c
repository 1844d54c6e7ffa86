/* The first process of an emulated machine: inserts the modules that /modules/list names, takes the shared directory as its root, runs
   SCRIPT and turns the machine off. With DISK its root is that disk (ext4), and the shared directory is mounted at TREE. The kernel passes
   these variables on from its command line. */

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void insert(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || syscall(SYS_finit_module, file, "", 0) != 0)
        perror(path);
    close(file);
}

/* Programs speak with themselves over it. */
static void start_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int any = socket(AF_INET, SOCK_DGRAM, 0);
    if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request) != 0)
        perror("lo");
    close(any);
}

static int take_root(void) {
    const char *disk = getenv("DISK"), *tree = getenv("TREE");
    if (disk && mount("devtmpfs", "/dev", "devtmpfs", 0, NULL))
        return 1;
    return mount(disk ? disk : "root", "/root", disk ? "ext4" : "virtiofs", 0, NULL) || chdir("/root") ||
           mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") ||
           chdir("/") || mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL) ||
           mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) || mkdir("/dev/shm", 01777) ||
           mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) || mkdir("/dev/pts", 0755) ||
           mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666") || symlink("/proc/self/fd", "/dev/fd") ||
           symlink("/proc/self/fd/0", "/dev/stdin") || symlink("/proc/self/fd/1", "/dev/stdout") ||
           symlink("/proc/self/fd/2", "/dev/stderr") || (disk && mount("root", tree, "virtiofs", 0, NULL));
}

int main(void) {
    char path[256];
    FILE *list = fopen("/modules/list", "r");
    while (list && fscanf(list, "%255s", path) == 1)
        insert(path);
    /* Nameless as it boots, "(none)": images are not made for such a name. */
    if (sethostname("emulated", 8) || take_root()) {
        perror("taking the root");
    } else {
        start_loopback();
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/sh", "sh", getenv("SCRIPT"), (char *)NULL);
            _exit(127);
        }
        waitpid(child, NULL, 0);
    }
    sync();
    reboot(RB_POWER_OFF);
    return 1;
}
