"""python unit_report.py FOLDER FILE REPORT: the unittests of FOLDER/FILE. REPORT gets a line for each event as it
happens, `planned ID`, `passed ID`, `failed ID` or `skipped ID`, so that it also tells about a run that was killed.
"""

import sys
import unittest


class Report(unittest.TextTestResult):
    file = None

    def note(self, what, test):
        print(what, test.id(), file=self.file, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note("passed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note("failed", test)

    def addError(self, test, error):  # also of a module that cannot be imported and of a class's set-up
        super().addError(test, error)
        self.note("failed", test)


def each(suite):
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else (test,)


def main():
    folder, name, report = sys.argv[1:]
    sys.path[0] = folder  # not this script's
    suite = unittest.defaultTestLoader.discover(folder, pattern=name)
    with open(report, "w") as Report.file:
        for test in each(suite):
            print("planned", test.id(), file=Report.file, flush=True)
        done = unittest.TextTestRunner(verbosity=2, resultclass=Report).run(suite)
    sys.exit(not done.wasSuccessful())


main()
