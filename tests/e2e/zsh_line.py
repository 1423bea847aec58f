"""zsh_line.py DIR LINE: what zsh, with the completions in DIR, shows behind LINE and a tab; in a
terminal."""
import os
import pty
import select
import sys
import time


def read(fd, until, secs):
    out, end = "", time.time() + secs
    while time.time() < end and not until(out):
        if select.select([fd], [], [], 0.1)[0]:
            out += os.read(fd, 65536).decode(errors="replace")
    return out


pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", PS1="")
    os.execvp("zsh", ["zsh", "-f", "-i"])
os.write(fd, f"stty columns 300; fpath=({sys.argv[1]} $fpath); autoload -U compinit; "
             f"compinit -u -d {sys.argv[1]}/dump; PROMPT='> '; echo rea''dy\n".encode())
read(fd, lambda out: "ready\r\n" in out, 20)
read(fd, lambda out: out.endswith("> "), 5)
os.write(fd, (sys.argv[2] + "\t").encode())
print(read(fd, lambda out: len(out) > len(sys.argv[2]) + 2, 5) + read(fd, lambda out: False, 0.5))
os.kill(pid, 9)
