/* The client of the warm fork server (fork_server.py), as small as such a client can be: it hands over its standard
 * streams, waits for one byte, and exits with it. What it costs to start this client is part of what a fork server
 * costs, since somebody has to run it. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
    fputs("usage: fork-client SOCKET\n", stderr);
    return 2;
  }
  strcpy(address.sun_path, argv[1]);
  int server = socket(AF_UNIX, SOCK_STREAM, 0);
  if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
    perror("fork-client: the server does not answer");
    return 2;
  }

  int streams[3] = {0, 1, 2};
  char byte = 0;
  char control[CMSG_SPACE(sizeof streams)] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof streams);
  memcpy(CMSG_DATA(header), streams, sizeof streams);
  if (sendmsg(server, &message, 0) != 1 || read(server, &byte, 1) != 1) {
    perror("fork-client: no answer");
    return 2;
  }
  return byte;
}
