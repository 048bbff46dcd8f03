"""The Python side of test_bridges.py: one scenario a process."""

import ctypes
import sys
import threading

import standin


def report(call):
    try:
        call()
        print("ok")
    except standin.Error as error:
        print(f"{type(error).__name__}: {error}")


def sum_(job_name, offset, columns, scale, twice):
    data = (ctypes.c_float * 4)(1, 2, 3, 4)
    job = standin.standin_job(2, 0.5, ctypes.addressof(data), (1, 2, 3), standin.standin_range(0, 100))
    results = (ctypes.c_float * 2)()
    result = ctypes.addressof(results) + int(offset)
    job_argument = None if job_name == "null" else job
    report(lambda: standin.sum(job_argument, result, int(columns), float(scale), twice == "1", None))
    print(f"{results[0]:g}")


def threads():
    usable = []
    all_threads = [threading.Thread(target=lambda: usable.append(standin.available())) for _ in range(16)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    print(usable.count(True), standin.loads())


def main(scenario, *arguments):
    if scenario == "available":
        for _ in range(3):
            print(str(standin.available()).lower(), standin.unavailable_reason() or "-")
    elif scenario == "sum":
        sum_(*arguments)
    elif scenario == "fail":
        report(lambda: standin.fail(int(arguments[0])))
    elif scenario == "threads":
        threads()
    elif scenario == "reset":
        standin.reset(int(arguments[0]))
        print(standin.loads())


main(*sys.argv[1:])
