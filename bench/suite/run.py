"""Training steps, forward passes and memory of well-known nets, ours against other programs'. bench/peers starts it."""

import argparse
import sys

import contestants
import nets
import pairs
import report
import state


def cases(options):
    for net in options.net:
        folder = nets.written(net, contestants.WORK / "nets")
        for threads in options.threads:
            if "train" in options.part:
                yield contestants.Case(net, "train", nets.NETS[net][0], threads, folder)
            if "score" in options.part:
                for batch in nets.SCORED:
                    yield contestants.Case(net, "score", batch, threads, folder)


def parsed():
    parser = argparse.ArgumentParser(prog="bench/peers", description=__doc__)
    add = parser.add_argument
    add("part", nargs="*", help="train, score; both when none is named")
    add("--net", nargs="+", choices=list(nets.NETS), default=list(nets.NETS))
    add("--threads", nargs="+", type=int, default=[1, 2])
    add("--peer", nargs="+", choices=sorted({p for part in contestants.PEERS.values() for p in part}))
    add("--pairs", type=int, default=5)
    options = parser.parse_args()
    options.part = options.part or list(contestants.PEERS)
    if unknown := set(options.part) - set(contestants.PEERS):
        parser.error(f"no part has the name {', '.join(sorted(unknown))}; there are {', '.join(contestants.PEERS)}")
    return options


def main():
    options = parsed()
    contestants.make_switch()
    if "caffe" in (options.peer or ["caffe"]):
        contestants.build_caffe()
        blas = contestants.caffes_blas()
        print(f"BVLC Caffe's OpenBLAS: {blas['chosen']}, {blas['gflops']:.0f} GFLOP/s by sgemm, 1 thread", flush=True)
    for threads in options.threads:
        said = f"{contestants.sgemm_gflops(threads):.0f} GFLOP/s by sgemm of MKL"
        print(f"this machine, {threads} thread{'s' if threads > 1 else ''}: {said}", flush=True)
    rows, failed, results = [], [], contestants.WORK / "results.json"
    known = report.merged(results, rows)
    for case in cases(options):
        names = [n for n in contestants.PEERS[case.part] if not options.peer or n in options.peer]
        try:
            for row in pairs.compared(case, names, options.pairs):
                rows.append(row)
                print(report.line(row), flush=True)
            known = report.merged(results, rows)
        except contestants.Failed as e:
            failed.append(f"{case}: {e}")
            print(f"error: {failed[-1]}", flush=True)
    here = [row for row in known if row.get("processor") == state.of_code_and_machine()["processor"]]
    (contestants.WORK / "results.md").write_text(report.table(known) + "\n")
    for path in (contestants.WORK / "results.md", *report.plots(here, contestants.WORK)):
        print(path.relative_to(nets.ROOT))
    sys.exit(1 if failed else 0)


try:
    main()
except contestants.Failed as e:
    sys.exit(f"error: {e}")
