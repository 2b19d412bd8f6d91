// Files that were chosen or dropped, folders included, each with the name it is sent under.

/** Files of a file input; those of a folder keep their path below it in their name. */
export function chosenFiles(input) {
  const files = Array.from(input.files, (file) => ({ file, name: file.webkitRelativePath || file.name }));
  input.value = "";
  return files.filter(({ name }) => !isHidden(name));
}

/** Files of a drop, with those in dropped folders. */
export async function droppedFiles(transfer) {
  const entries = Array.from(transfer.items ?? [], (item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [];
  for (const entry of entries) await collect(entry, entry.name, files);
  return entries.length ? files : Array.from(transfer.files, (file) => ({ file, name: file.name }));
}

const isHidden = (path) => path.split("/").some((part) => part.startsWith("."));

async function collect(entry, name, files) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    files.push({ file: await new Promise((resume, fail) => entry.file(resume, fail)), name });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const entries = await new Promise((resume, fail) => reader.readEntries(resume, fail)); // a hundred at a time
    if (!entries.length) return;
    for (const each of entries) await collect(each, `${name}/${each.name}`, files);
  }
}
