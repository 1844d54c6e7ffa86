"""asyncio with streams, children, threads and signals; multiprocessing with each way to start a process."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import signal
import sys
import time


def square(number):
    return number * number


def put(queue, value):
    queue.put((value, multiprocessing.current_process().name))


async def serve():
    async def upper(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(upper, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def ask(text):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text + b"\n")
        answer = await reader.read()
        writer.close()
        return answer

    print(await asyncio.gather(*(ask(b"line %d" % i) for i in range(20))))
    server.close()


async def children():
    code = "import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.exit(3)"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    print((await child.communicate(b"abc"))[0], child.returncode)
    sleeper = await asyncio.create_subprocess_exec("sleep", "60")
    sleeper.terminate()
    print(await sleeper.wait())


async def others():
    loop = asyncio.get_running_loop()
    caught = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, caught.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(caught.wait(), 10)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        print(await asyncio.gather(*(loop.run_in_executor(pool, square, i) for i in range(5))))
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.05)
    except asyncio.TimeoutError:
        print("timed out")
    began = loop.time()
    await asyncio.sleep(0.05)
    print(0.04 < loop.time() - began < 10, abs(loop.time() - time.monotonic()) < 10)


def processes(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        print(method, pool.map(square, range(8)))
    queue = context.Queue()
    child = context.Process(target=put, args=(queue, method), name="child of " + method)
    child.start()
    print(queue.get(timeout=60))
    child.join()
    print(child.exitcode)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        print(list(pool.map(square, range(4))))


def shared():
    counter = multiprocessing.Value("i", 0)
    context = multiprocessing.get_context("fork")

    def add():
        for _ in range(100):
            with counter.get_lock():
                counter.value += 1

    workers = [context.Process(target=add) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(counter.value)
    from multiprocessing import shared_memory

    memory = shared_memory.SharedMemory(create=True, size=100)
    memory.buf[:3] = b"abc"
    again = shared_memory.SharedMemory(memory.name)
    print(bytes(again.buf[:3]))
    again.close()
    memory.close()
    memory.unlink()


if __name__ == "__main__":
    for part in (serve, children, others):
        asyncio.run(part())
    for method in ("fork", "spawn", "forkserver"):
        processes(method)
    shared()
    print(os.readlink("/proc/self/exe"))
