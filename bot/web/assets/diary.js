'use strict';
// The diary: what is remembered of the person, in a dialog of its own. It uses the small tools of app.js.

const diary = $('diary');
// loadDiary lists the notes that are searched for. Only the newest answer counts.
let searching = 0;

async function loadDiary() {
  const mine = ++searching;
  const query = $('diary-words').value.trim();
  let found;
  try {
    found = await readJSON('/api/diary' + (query ? '?' + new URLSearchParams({ q: query }) : ''));
  } catch (err) {
    if (mine === searching) diaryState(err.message, true);
    return;
  }
  if (mine !== searching) return;
  $('diary-notes').replaceChildren(...found.notes.map(noteItem));
  const count = found.notes.length === 1 ? '1 note' : found.notes.length + ' notes';
  diaryState(found.notes.length ? count : query ? 'Nothing that is remembered has anything of that.' : 'Nothing is remembered of you yet. Say “remember that …” in a conversation.', false);
}

function diaryState(text, bad) {
  $('diary-state').textContent = text;
  $('diary-state').classList.toggle('bad', bad);
}

function noteItem(note) {
  const marks = [note.said.slice(0, 10) + ', ' + note.age];
  if (note.newer) marks.push('older: another note took its place');
  if (note.scope !== 'private') marks.push('told in ' + note.scope);
  if (note.origin.outside) marks.push('written while text of strangers was in view');
  if (note.stale) marks.push('old: may no longer hold');
  const item = make('li', { class: note.newer ? 'note older' : 'note' });
  const show = () => item.replaceChildren(
    make('p', { class: 'note-text', text: note.text }),
    make('p', { class: 'note-marks', text: marks.join(' · ') }),
    note.aliases ? make('p', { class: 'note-marks', text: 'also found by: ' + note.aliases.join(', ') }) : '',
    make('p', { class: 'note-buttons' },
      make('button', { type: 'button', onclick: edit }, 'Edit'),
      make('button', { type: 'button', onclick: ask }, 'Delete')));
  const back = () => {
    show();
    item.querySelector('button').focus();
  };
  const ask = () => {
    const yes = make('button', { type: 'button', class: 'danger', onclick: () => change({}) }, 'Delete for good');
    item.querySelector('.note-buttons').replaceChildren(yes, make('button', { type: 'button', onclick: back }, 'Keep it'));
    yes.focus();
  };
  const edit = () => {
    const field = make('textarea', { rows: 3, 'aria-label': 'The note' });
    field.value = note.text;
    item.replaceChildren(field, make('p', { class: 'note-buttons' },
      make('button', { type: 'button', onclick: () => change({ text: field.value }) }, 'Save'),
      make('button', { type: 'button', onclick: back }, 'Cancel')));
    onEscape(item, back);
    field.focus();
  };
  const change = async what => {
    try {
      await post('/api/diary/note', { id: newID(), note: note.id, ...what });
    } catch (err) {
      diaryState(err.message, true);
      return;
    }
    await loadDiary();
    $('diary-words').focus();
  };
  show();
  return item;
}

$('diary-open').addEventListener('click', () => {
  side(false);
  $('diary-words').value = '';
  diaryState('', false);
  diary.showModal();
  $('diary-words').focus();
  loadDiary();
});
$('diary-close').addEventListener('click', () => diary.close());
$('diary-search').addEventListener('submit', e => { e.preventDefault(); loadDiary(); });
$('diary-words').addEventListener('input', () => { if (!$('diary-words').value) loadDiary(); });
