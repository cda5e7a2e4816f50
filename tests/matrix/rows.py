# SPDX-License-Identifier: Apache-2.0
"""What commands do inside, what the host does beside them, and when: a row each.

A cell is one of each. The engine (matrixlib.py) knows none of the names in here: a new command,
edit or sequence is a row, and is combined with all others.
"""

# What every cell begins with: old files. x/ holds what edits put somewhere else; b/ is where
# no command but for one file has work.
TREE = {
    "a": {"f": "file\n", "g": "other\n", "h": "third\n",
          "d": {"x": "in d\n", "y": "in d, too\n", "s": {"z": "deep\n", "w": "deep, too\n"}},
          "e": {}, "ln": ("link", "f")},
    "b": {"c": "c\n", "r": "r\n", "k": "k\n", "hl": ("hard", "b/k")},
    "x": {"f": "prepared\n", "g": "prepared, too\n",
          "d": {"x": "prepared x\n", "n": "prepared n\n", "s": {"z": "prepared z\n"}}},
}

# name: (shell inside, the paths of it that a partial commit and a partial undo choose).
# Each also changes b/c, so that something stays behind.
COMMANDS = {
    "create": ("echo made > a/n", "a/n"),
    "create deep": ("echo made > a/d/s/n", "a/d/s/n"),
    "create in an empty directory": ("echo made > a/e/n", "a/e/n"),
    "overwrite in place": ("echo made > a/f", "a/f"),
    "overwrite deep": ("echo made > a/d/s/z", "a/d/s/z"),
    "overwrite by rename": ("echo made > a/t; mv a/t a/f", "a/f"),
    "append": ("echo made >> a/f", "a/f"),
    "same length, same time": ("echo made > a/f; touch -r a/g a/f", "a/f"),
    "delete": ("rm a/f", "a/f"),
    "chmod": ("chmod 600 a/f", "a/f"),
    "chmod a directory": ("chmod 700 a/d", "a/d"),
    "chmod a directory and what is in it": ("chmod 700 a/d; chmod 600 a/d/x", "a/d"),
    "setxattr": ("setfattr -n user.made -v 1 a/f", "a/f"),
    "setxattr on a directory": ("setfattr -n user.made -v 1 a/d", "a/d"),
    "ACL on a directory": ("setfacl -m u:$(id -u):rwx,d:u:$(id -u):rwx a/d", "a/d"),
    "setxattr on the directory around": ("setfattr -n user.made -v 1 a", "b/c"),
    "mkdir with attributes": ("mkdir -p a/n/s; setfattr -n user.made -v 1 a/n; u=$(id -u); "
                              "setfacl -m u:$u:rwx,d:u:$u:rwx a/n a/n/s; "
                              "echo made > a/n/x; echo made > a/n/s/z", "a/n/x"),
    "mkdir with attributes, deep": ("mkdir -p a/n/s; setfattr -n user.made -v 1 a/n a/n/s; "
                                    "echo made > a/n/x; echo made > a/n/s/z", "a/n/s/z"),
    "mkdir with files": ("mkdir -p a/n/s; echo made > a/n/x; echo made > a/n/s/z", "a/n"),
    "mkdir": ("mkdir a/n", "a/n"),
    "rmdir": ("rmdir a/e", "a/e"),
    "rm -r": ("rm -r a/d", "a/d"),
    "rename": ("mv a/f a/n", "a/f a/n"),
    "rename over": ("mv a/f a/g", "a/f a/g"),
    "rename a directory": ("mv a/d a/n", "a/d a/n"),
    "rename into a directory": ("mv a/f a/d/n", "a/f a/d/n"),
    "file to directory": ("rm a/f; mkdir a/f; echo made > a/f/n", "a/f"),
    "file to link": ("ln -sf g a/f", "a/f"),
    "link elsewhere": ("ln -sfn g a/ln", "a/ln"),
    "directory to file": ("rm -r a/d; echo made > a/d", "a/d"),
    "directory to link": ("rm -r a/d; ln -s e a/d", "a/d"),
    "directory anew": ("rm -r a/d; mkdir a/d; echo made > a/d/n", "a/d"),
    "hard link": ("ln a/f a/n", "a/n"),
    "opened for writing": (": >> a/f; echo made > b/r", "b/c"),
    "opened for writing, deep": (": >> a/d/s/z; echo made > b/r", "b/c"),
    "the mode it had": ("chmod 644 a/f; echo made > b/r", "b/c"),
    "the mode a directory had": ("chmod 755 a/d; echo made > b/r", "b/c"),
    "the content it had": ("cp a/f a/t; cat a/t > a/f; rm a/t", "a/f"),
    "touch": ("touch a/f", "a/f"),
    "two files": ("echo made > a/f; echo made > a/g", "a/f"),
}

# name: shell on the host. "stet: ..." is another transaction that commits, "stet, undone: ..."
# one that is taken back again; "exchange A B" is renameat2(RENAME_EXCHANGE). One that fails in the
# tree as it is then makes no cell.
NONE = "nothing"
EDITS = {
    NONE: "",
    "write": "echo host > a/f",
    "write, same length and time": "echo HOST > a/f; touch -r x/g a/f",
    "append": "echo host >> a/f",
    "replace by rename": "echo host > a/t; mv a/t a/f",
    "replace by an old file": "mv x/f a/f",
    "delete": "rm a/f",
    "delete and make again": "rm a/f; echo host > a/f",
    "rename away": "mv a/f a/m",
    "rename over another": "mv a/f a/h",
    "chmod": "chmod 640 a/f",
    "setxattr": "setfattr -n user.host -v 1 a/f",
    "write by its old time": "touch -r a/f x/t; printf H | dd of=a/f conv=notrunc status=none; touch -r x/t a/f; rm x/t",
    "write the other by its old time":
        "touch -r a/g x/t; printf H | dd of=a/g conv=notrunc status=none; touch -r x/t a/g; rm x/t",
    "setxattr on the other": "setfattr -n user.host -v 1 a/g",
    "setxattr on n": "setfattr -n user.host -v 1 a/n",
    "touch": "touch a/f",
    "hard link": "ln a/f a/m",
    "file to directory": "rm a/f; mkdir a/f; echo host > a/f/n",
    "file to link": "ln -sf h a/f",
    "exchange files": "exchange a/f x/f",
    "exchange two of the command's": "exchange a/f a/g",
    "write the other": "echo host > a/g",
    "create n": "set -C; echo host > a/n",
    "mkdir n": "mkdir a/n",
    "mkdir n with files": "mkdir a/n; echo host > a/n/x",
    "old file to n": "mv -nT x/f a/n; test ! -e x/f",
    "old directory to n": "mv -nT x/d a/n; test ! -e x/d",
    "link n": "ln -s x a/n",
    "write to n": "test -f a/n; echo host > a/n",
    "delete n": "rm -r a/n",
    "rename n away": "mv a/n a/m",
    "chmod n": "chmod 711 a/n",
    "new file in n": "echo host > a/n/m",
    "old file into n": "test -d a/n; mv x/f a/n/m",
    "old directory into n": "test -d a/n; mv x/d a/n/m",
    "write in n": "test -f a/n/x; echo host > a/n/x",
    "exchange n": "test -d a/n; exchange a/n x/d",
    "write in d": "echo host > a/d/x",
    "write deep in d": "test -f a/d/s/z; echo host > a/d/s/z",
    "new file in d": "echo host > a/d/m",
    "new file deep in d": "echo host > a/d/s/m",
    "n in d": "set -C; echo host > a/d/n",
    "n deep in d": "set -C; echo host > a/d/s/n",
    "old file into d": "test -d a/d; mv x/f a/d/m",
    "old file over one in d": "test -f a/d/x; mv x/f a/d/x",
    "old directory deep into d": "mv -T x/d a/d/s/m",
    "delete in d": "rm a/d/x",
    "delete deep in d": "rm a/d/s/z",
    "rm -r in d": "rm -r a/d/s",
    "chmod in d": "chmod 640 a/d/x",
    "setxattr deep in d": "setfattr -n user.host -v 1 a/d/s",
    "chmod d": "chmod 711 a/d",
    "setxattr on d": "setfattr -n user.host -v 1 a/d",
    "default ACL on d": "setfacl -d -m u:0:rx a/d",
    "setxattr on n": "setfattr -n user.host -v 1 a/n",
    "ACL on n": "setfacl -m u:0:r-x a/n",
    "default ACL on the parent": "setfacl -d -m u:0:rx a",
    "rm -r d": "rm -r a/d",
    "rename d away": "mv a/d a/m",
    "old directory instead of d": "mv a/d x/old; mv x/d a/d",
    "exchange d": "test -d a/d; exchange a/d x/d",
    "link instead of d": "mv a/d a/m; ln -s m a/d",
    "directory anew": "rm -r a/d; mkdir a/d; echo host > a/d/m",
    "in the empty directory": "echo host > a/e/m",
    "n in the empty directory": "set -C; echo host > a/e/n",
    "rmdir": "rmdir a/e",
    "chmod the empty directory": "chmod 711 a/e",
    "create beside": "echo host > a/m",
    "delete beside": "rm a/h",
    "chmod the parent": "chmod 711 a",
    "setxattr on the parent": "setfattr -n user.host -v 1 a",
    "rename the parent away": "mv a m",
    "parent by a link": "mv a m; ln -s m a",
    "rm -r the parent": "rm -r a",
    "exchange parents": "exchange a x",
    "elsewhere": "echo host > b/k",
    "new elsewhere": "echo host > b/m",
    "link elsewhere": "ln -sfn h a/ln",
    "write by a hard link": "echo host > b/hl",
    "stet writes": "stet: echo host > a/f",
    "stet replaces": "stet: mv x/f a/f",
    "stet deletes": "stet: rm a/f",
    "stet renames": "stet: mv a/f a/m",
    "stet makes n": "stet: set -C; echo host > a/n",
    "stet makes directory n": "stet: mkdir a/n; echo host > a/n/x",
    "stet moves a directory to n": "stet: mv -nT x/d a/n; test ! -e x/d",
    "stet writes in d": "stet: echo host > a/d/x",
    "stet deletes d": "stet: rm -r a/d",
    "stet moves d": "stet: mv a/d a/m",
    "stet makes d anew": "stet: rm -r a/d; mkdir a/d; echo host > a/d/m",
    "stet chmods d": "stet: chmod 711 a/d",
    "stet setxattrs d": "stet: setfattr -n user.host -v 1 a/d",
    "stet moves into d": "stet: test -d a/d; mv x/f a/d/m",
    "stet elsewhere": "stet: echo host > b/k",
    "stet writes, undone": "stet, undone: echo host > a/f",
    "stet deletes d, undone": "stet, undone: rm -r a/d",
    "stet makes n, undone": "stet, undone: mkdir a/n; echo host > a/n/x",
}

# Verbs on the transaction after its run; "*" is when the host edits, "during" before the run
# ends. "some" are the paths of the command's row, "rest" is b/c. What comes after the edit is judged.
SEQUENCES = (
    "during commit",
    "during some commit",
    "* commit",
    "* some",
    "* some commit",
    "* rollback undo commit",
    "some * commit",
    "some commit * undo",
    "some * undo",
    "some undo * redo",
    "some undo * commit",
    "commit * undo",
    "commit * undo-some",
    "commit * undo-some undo",
    "commit undo-some * undo",
    "commit undo-some * redo",
    "commit * undo-rest undo",
    "some * commit undo undo",
    "commit undo-some * undo-rest redo redo",
    "commit undo * rest",
    "some commit undo-rest * redo",
    "commit undo * redo",
    "commit undo * commit",
    "commit undo redo * undo",
    "rollback undo * commit",
)

# Differences that are right, each with its reason: (command, edit, sequence, finding), patterns
# of fnmatch.
RIGHTFUL = {
    ("hard link", "*", "*", "refused, and the path is not named"):
        "the name that cannot be made is named, and why: its file is not there any more",
    ("hard link", "*", "*", "redo at once is refused"):
        "the host has put another file under the name of the one that is to have two",
    ("directory to *", "rm -r d", "during*", "the host's change is lost"):
        "both have deleted it, and what the command made in its place is new",
    ("directory to *", "rename d away", "during*", "the host's change is lost"):
        "the directory is where the host has moved it, and the command's is new",
    ("*", "exchange parents", "*redo*", "refused without a reason"):
        "what is done again would go into another directory",
    ("*", "exchange parents", "*undo*", "refused without a reason"):
        "what is taken back would go into another directory",
    ("overwrite by rename", "stet *, undone", "during*", "refused without a reason"):
        "what was there is not known, since nobody inside has opened it",
    ("*", "stet *", "during*", "the host's change is lost"):
        "known defect: what another transaction commits during the run, before the observer has "
        "noted the path, is not seen as a deletion",
    ("file to directory", "touch", "*", "refused without a reason"):
        "the new directory bears a time of the host's, and is not deleted with it",
}
