"""ck-post-build: lazily compiled Composable Kernel attention libraries, and checked bridges to prebuilt ones.

The commands are functions here: :func:`rewrite`, :func:`build`, :func:`install`, :func:`verify`.
"""

from ck_post_build.build import BuildRequest, build
from ck_post_build.compile_db import CompileDatabase, FixedFlags, FlagSource
from ck_post_build.errors import CkPostBuildError
from ck_post_build.install import install
from ck_post_build.report import Entry, LeftOut, Report
from ck_post_build.rewriter import rewrite
from ck_post_build.verify import Verified, verify

__all__ = [
    "BuildRequest",
    "CkPostBuildError",
    "CompileDatabase",
    "Entry",
    "FixedFlags",
    "FlagSource",
    "LeftOut",
    "Report",
    "Verified",
    "build",
    "install",
    "rewrite",
    "verify",
]
